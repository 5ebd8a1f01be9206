#pragma once

#include <nlohmann/json.hpp>
#include <vector>

namespace precast::tools {

/// The value of `slot` in the journal for trials that `--trial` runs, as in a Slurm array.
inline constexpr const char* kTaskSlot = "task";

/// Slot usage of a grid, in seconds, over all runs of its command.
struct Occupancy {
  /// Time during which `precast grid` was running.
  double wall_seconds = 0;
  /// This time multiplied by the number of slots.
  double slot_seconds = 0;
  /// Slot time used by trials. If `precast grid` was killed, its trials count as running until the
  /// last record that it wrote.
  double busy_seconds = 0;
};

/// Computes the slot usage from the journal, to which a grid writes `{"event": "begin", "slots",
/// "time"}` when it starts and `{"event": "finish", "time"}` when it ends. Tasks of a Slurm array
/// have no slots and are not counted. @param records in the order of time.
[[nodiscard]] Occupancy occupancy(const std::vector<nlohmann::ordered_json>& records);

}  // namespace precast::tools
