#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "tools/experiments/grid/early_stop.h"
#include "tools/experiments/grid/grid_page.h"
#include "tools/experiments/grid/shared_loaders.h"
#include "tools/experiments/grid/sweep.h"
#include "tools/experiments/grid/sweep_file.h"
#include "tools/experiments/trial/pool_display.h"

namespace precast::tools {

/// Shows the progress of a grid, updates its page and stops trials early. Not thread-safe.
class GridWatcher final : public PoolDisplay {
 public:
  /// Keeps references to `sweep`, `file`, `states` and `journal`.
  /// @param file is checked whenever a trial starts.
  /// @param journal receives `{"event": "rung", "trial", "rung", "time"}` whenever a trial passes a
  /// rung of asha, so that a restarted grid does not compare the trial at this rung again.
  /// @param loaders null: trials share no loaders.
  GridWatcher(const Sweep& sweep, const SweepFile& file,
              const std::map<std::string, TrialState>& states, Journal& journal, std::size_t slots,
              std::unique_ptr<SharedLoaders> loaders = nullptr);

  /// asha: the waiting trials that do not pass the rung that they have reached. An earlier run of
  /// the grid stopped them, but was killed before it recorded this.
  [[nodiscard]] std::vector<const Trial*> missed_early_stops();

  std::optional<std::vector<std::string>> prepare(const NextStart& next) override;
  /// @throws ConfigError or IoError (SweepFile::check()), so that results of different recipes are
  /// not mixed.
  void starting(const Trial& trial) override;
  void ended(const Trial& trial, const nlohmann::ordered_json& record) override;
  void update(const std::list<RunningTrial>& running, std::size_t waiting) override;
  bool should_stop(const Trial& trial) override;
  std::optional<std::string> trial_to_resume() override;

 private:
  /// Reads new lines of a trial's log, and reports all epochs of the log to the rule, because
  /// PoolDisplay may already have read some new ones.
  void report(const Trial& trial);
  /// Records the rung that `trial` has passed, if it is above `before`.
  void record_passed_rung(const std::string& trial, int before);
  void write_page();

  const Sweep& sweep_;
  const SweepFile& file_;
  const std::map<std::string, TrialState>& states_;
  Journal& journal_;
  EarlyStop early_stop_;
  std::unique_ptr<SharedLoaders> loaders_;
  /// For each trial, the last epoch after which it was compared or, before the first comparison,
  /// its last epoch when the grid started. A trial that has just been restarted is therefore not
  /// stopped before it makes progress.
  std::map<std::string, std::int64_t> compared_epochs_;
  GridPage page_;
  /// Whether a trial has ended since the page was last written.
  bool page_is_old_ = false;
  bool page_error_shown_ = false;
  std::chrono::steady_clock::time_point next_page_;
};

}  // namespace precast::tools
