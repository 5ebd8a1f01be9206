#pragma once

#include <nlohmann/json.hpp>
#include <vector>

namespace precast::tools {

/// The name of an array task's device in the journal's `slot`.
inline constexpr const char* kTaskSlot = "task";

/// Slot usage of a grid, over all of its starts. Seconds.
struct Occupancy {
  /// Time during which a `precast grid` ran, without the pauses between two runs.
  double wall = 0;
  /// Slot time available in that period.
  double slot_time = 0;
  /// Slot time used by trials. For a start that was killed, it is counted up to its last record.
  double busy = 0;
};

/// Computed from the journal, in which each start of a grid writes `{"event": "begin", "slots",
/// "time"}` and its end `{"event": "finish", "time"}`. Tasks of a Slurm array have no slots and are
/// not counted.
/// @param records by time.
[[nodiscard]] Occupancy occupancy(const std::vector<nlohmann::ordered_json>& records);

}  // namespace precast::tools
