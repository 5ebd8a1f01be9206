#include "tools/experiments/grid/occupancy.h"

#include <map>
#include <string>

namespace precast::tools {
namespace {

/// One run of `precast grid`, from `begin` to `finish` or, if it was killed, to its last record.
struct Session {
  double begin = 0;
  double last = 0;
  double slots = 0;
  std::map<std::string, double> running{};

  /// Applies an event that this run of the grid recorded.
  void apply(const std::string& event, const std::string& trial, double time, Occupancy& total) {
    if (event == "start") {
      running[trial] = last = time;
    } else if (const auto start = running.find(trial); event == "end" && start != running.end()) {
      last = time;
      total.busy_seconds += time - start->second;
      running.erase(start);
    } else if (event == "finish") {
      last = time;
    }
  }

  void close(Occupancy& total) const {
    total.wall_seconds += last - begin;
    total.slot_seconds += slots * (last - begin);
    for (const auto& [trial, start] : running) total.busy_seconds += last - start;
  }
};

}  // namespace

Occupancy occupancy(const std::vector<nlohmann::ordered_json>& records) {
  Occupancy total;
  Session session;
  for (const auto& record : records) {
    const std::string event = record.value("event", "");
    const std::string trial = record.value("trial", "");
    const double time = record.value("time", 0.0);
    if (event == "begin") {
      session.close(total);
      session = {.begin = time, .last = time, .slots = record.value("slots", 0.0)};
    }
    if (session.slots == 0) continue;
    const bool by_task = event == "start" && record.value("slot", "") == kTaskSlot;
    // If a task starts a trial that the grid seems to run, the grid was killed before, because a
    // grid and a task never run the same trial at the same time.
    if (by_task && !session.running.contains(trial)) continue;
    if (!by_task) session.apply(event, trial, time, total);
    if (by_task || event == "finish") {
      session.close(total);
      session = {};
    }
  }
  session.close(total);
  return total;
}

}  // namespace precast::tools
