#pragma once

#include <nlohmann/json.hpp>
#include <vector>

namespace precast::tools {

/// The name of what an array task trains on, in the journal's `slot`.
inline constexpr const char* kTaskSlot = "task";

/// How well a grid used its slots, over all of its starts. Seconds.
struct Occupancy {
  /// While a `precast grid` ran; the pauses between two of them do not count.
  double wall = 0;
  /// What the slots had to give in that time.
  double slot_time = 0;
  /// What trials took of it. After a kill up to the last record that is there.
  double busy = 0;
};

/// From the journal, in which each start of a grid leaves `{"event": "begin", "slots", "time"}` and
/// its end `{"event": "finish", "time"}`. Tasks of a Slurm array have no slots and do not count.
/// @param records by time.
[[nodiscard]] Occupancy occupancy(const std::vector<nlohmann::ordered_json>& records);

}  // namespace precast::tools
