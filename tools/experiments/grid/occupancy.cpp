#include "tools/experiments/grid/occupancy.h"

#include <map>
#include <string>

namespace precast::tools {
namespace {

/// One `precast grid`, from its begin to its finish or, after a kill, its last record.
struct Session {
  double begin = 0;
  double last = 0;
  double slots = 0;
  std::map<std::string, double> running{};

  void close(Occupancy& total) const {
    total.wall += last - begin;
    total.slot_time += slots * (last - begin);
    for (const auto& [trial, start] : running) total.busy += last - start;
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
    if (event == "start" && record.value("slot", "") == kTaskSlot) {
      // A grid has no trial that a task has, too: it was killed before.
      if (!session.running.contains(trial)) continue;
      session.close(total);
      session = {};
    } else if (event == "start") {
      session.running[trial] = session.last = time;
    } else if (const auto start = session.running.find(trial);
               event == "end" && start != session.running.end()) {
      session.last = time;
      total.busy += time - start->second;
      session.running.erase(start);
    } else if (event == "finish") {
      session.last = time;
      session.close(total);
      session = {};
    }
  }
  session.close(total);
  return total;
}

}  // namespace precast::tools
