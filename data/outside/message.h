#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "data/loader/host_batch.h"
#include "data/ring/ring_position.h"
#include "framework/core/export.h"

namespace precast::data {

/// A message in the format of MESSAGE.md: a batch, or the end.
struct OutsideMessage {
  /// Set for an end message: the reason, without control characters.
  std::optional<std::string> end;
  /// The position of the batch; nothing if the producer does not number its batches.
  std::optional<RingPosition> position;
  /// The outputs of the batch. Their data pointers point into the message and may be unaligned.
  std::vector<HostTensor> fields;
};

/// Parses an untrusted message. @throws ProducerError if a value is invalid, or the data does not
/// fill the message exactly.
[[nodiscard]] PRECAST_API OutsideMessage parse_outside_message(std::span<const std::byte> message);

/// Writes a message; the counterpart of parse_outside_message().
[[nodiscard]] PRECAST_API std::vector<std::byte> make_outside_message(
    const OutsideMessage& message);

/// The largest JSON header, in bytes.
inline constexpr std::uint32_t kMaxMessageHeaderBytes = 65536;

}  // namespace precast::data
