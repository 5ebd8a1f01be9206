#pragma once

#include <chrono>
#include <list>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "tools/grid/early_stop.h"
#include "tools/grid/sweep.h"
#include "tools/trial/run_log.h"
#include "tools/trial/trial_pool.h"

namespace precast::tools {

/// Shows a grid at work and stops trials early. On a terminal one line a slot is redrawn; elsewhere
/// each start and end is a line. Writes to standard error. One thread.
class GridWatcher final : public PoolWatcher {
 public:
  /// Borrows both.
  GridWatcher(const Sweep& sweep, const std::map<std::string, TrialState>& states, int slots);
  ~GridWatcher() override;

  void started(const RunningTrial& running) override;
  void ended(const Trial& trial, const nlohmann::ordered_json& record) override;
  void look(const std::list<RunningTrial>& running, std::size_t waiting) override;
  bool stops(const Trial& trial) override;
  std::optional<std::string> resumes() override;
  void say(const std::string& text) override;

 private:
  /// Reads what has come in a trial's log, and reports it to the rule.
  void refresh(const Trial& trial);
  [[nodiscard]] RunLog& log_of(const Trial& trial);
  [[nodiscard]] std::string slot_line(const RunningTrial& running);
  [[nodiscard]] std::string headline(std::size_t running, std::size_t waiting) const;
  void draw(const std::vector<std::string>& lines);
  void clear();

  const Sweep& sweep_;
  const std::map<std::string, TrialState>& states_;
  int slots_;
  EarlyStop early_stop_;
  std::map<std::string, RunLog> logs_;
  bool terminal_;
  std::size_t drawn_ = 0;
  std::chrono::steady_clock::time_point next_draw_;
};

}  // namespace precast::tools
