#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "data/ring/ring_error.h"
#include "data/ring/ring_position.h"

namespace precast::data {

/// A producer's message.
struct RingReply {
  enum class Kind : std::uint32_t { welcome = 1, end = 2 };
  Kind kind = Kind::end;
  /// Only in a welcome. @{
  std::uint32_t cell = 0;
  std::uint64_t sequence = 0;
  /// @}
  /// Only in an end. After the last item, the exit code is `done`. @{
  ExitCode exit_code = ExitCode::done;
  std::string text = {};
  /// @}
};

/// Converts the messages of RING.md to bytes and back. Texts that are too long are truncated.
/// @throws RingError if the bytes are not such a message; if they have a different version, the
/// error names both versions. @{
[[nodiscard]] std::vector<std::byte> ring_message(const RingJoin& join);
[[nodiscard]] std::vector<std::byte> ring_message(const RingReply& reply);
[[nodiscard]] PRECAST_API RingJoin parse_ring_join(std::span<const std::byte> message);
[[nodiscard]] PRECAST_API RingReply parse_ring_reply(std::span<const std::byte> message);
/// @}

}  // namespace precast::data
