#pragma once

#include <chrono>
#include <map>
#include <optional>
#include <string>

#include "tools/grid/early_stop.h"
#include "tools/grid/grid_page.h"
#include "tools/grid/sweep.h"
#include "tools/trial/pool_display.h"

namespace precast::tools {

/// Shows a grid at work, keeps its page up to date and stops trials early. One thread.
class GridWatcher final : public PoolDisplay {
 public:
  /// Borrows both.
  GridWatcher(const Sweep& sweep, const std::map<std::string, TrialState>& states,
              std::size_t slots);

  void ended(const Trial& trial, const nlohmann::ordered_json& record) override;
  void look(const std::list<RunningTrial>& running, std::size_t waiting) override;
  bool stops(const Trial& trial) override;
  std::optional<std::string> resumes() override;

 private:
  /// Reads what has come in a trial's log, and reports it to the rule.
  void report(const Trial& trial);
  void write_page();

  const Sweep& sweep_;
  const std::map<std::string, TrialState>& states_;
  EarlyStop early_stop_;
  GridPage page_;
  /// A trial has ended since the page was written.
  bool page_is_old_ = false;
  bool page_fails_ = false;
  std::chrono::steady_clock::time_point next_page_;
};

}  // namespace precast::tools
