#pragma once

#include <fmt/core.h>

#include <compare>
#include <cstdint>
#include <string>

namespace precast::data {

/// The position of a batch in the passes of a ring. The end of a pass has the number that the next
/// batch would have.
struct RingPosition {
  std::int64_t epoch = 0;
  std::int64_t batch = 0;

  friend auto operator<=>(const RingPosition&, const RingPosition&) = default;
};

/// Returns a text such as `epoch 1 batch 20`.
[[nodiscard]] inline std::string text_of(const RingPosition& position) {
  return fmt::format("epoch {} batch {}", position.epoch, position.batch);
}

/// Where a consumer joins.
struct RingJoin {
  enum class Mode : std::uint32_t {
    /// At `position`.
    position = 1,
    /// At the start of the first epoch that is still complete in the ring and whose number is at
    /// least `position.epoch`.
    epoch_start = 2,
    /// Nowhere: only the description is read, and the producer never waits for this consumer.
    description_only = 3,
  };
  Mode mode = Mode::epoch_start;
  RingPosition position = {};
};

}  // namespace precast::data
