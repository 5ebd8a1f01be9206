#pragma once

#include <map>
#include <optional>
#include <string>

#include "tools/grid/early_stop.h"
#include "tools/grid/sweep.h"
#include "tools/trial/pool_display.h"

namespace precast::tools {

/// Shows a grid at work and stops trials early. One thread.
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

  const Sweep& sweep_;
  const std::map<std::string, TrialState>& states_;
  EarlyStop early_stop_;
};

}  // namespace precast::tools
