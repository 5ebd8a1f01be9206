#pragma once

#include <chrono>
#include <list>
#include <map>
#include <span>
#include <string>
#include <vector>

#include "tools/experiments/trial/journal.h"
#include "tools/experiments/trial/run_log.h"
#include "tools/experiments/trial/trial.h"
#include "tools/experiments/trial/trial_pool.h"

namespace precast::tools {

/// Returns as many of the first `lines` as fit on the terminal without scrolling when the cursor is
/// in the line below them. Each line is truncated to the terminal's width. If some lines do not
/// fit, the last line says how many.
[[nodiscard]] std::vector<std::string> fit_terminal(std::vector<std::string> lines,
                                                    std::size_t rows, std::size_t columns);

/// The current load of a pool.
struct PoolLoad {
  std::size_t slots = 1;
  std::size_t running = 0;
  std::size_t waiting = 0;
};
/// `9 trials: 3 done, 2 running, 4 waiting, about 1:05 left`. @param states may also contain other
/// trials, such as those that are no longer in a sweep; these do not count.
[[nodiscard]] std::string pool_headline(std::span<const Trial> trials,
                                        const std::map<std::string, TrialState>& states,
                                        const PoolLoad& load);

/// Shows the progress of a pool on standard error: on a terminal as a headline and one line per
/// running trial, which are redrawn; elsewhere as one line for each start and end. Not thread-safe.
class PoolDisplay : public PoolWatcher {
 public:
  /// Keeps references to the trials and `states`. @param metric the name of a result, such as
  /// `top_1`. It is shown from summary.json when a trial is done and, on a terminal, from the last
  /// epoch in the log while a trial runs (top_1 if the log does not contain it).
  PoolDisplay(std::span<const Trial> trials, const std::map<std::string, TrialState>& states,
              std::size_t slots, std::string metric);
  ~PoolDisplay() override;

  void started(const RunningTrial& running) override;
  void ended(const Trial& trial, const nlohmann::ordered_json& record) override;
  void update(const std::list<RunningTrial>& running, std::size_t waiting) override;
  void show_message(const std::string& text) override;

 protected:
  /// Reads new lines of a trial's log.
  void refresh(const Trial& trial);
  [[nodiscard]] const RunLog& log_of(const Trial& trial);

 private:
  [[nodiscard]] std::string slot_line(const RunningTrial& running);
  void draw(const std::vector<std::string>& lines);
  void clear();

  std::span<const Trial> trials_;
  const std::map<std::string, TrialState>& states_;
  std::size_t slots_;
  std::string metric_;
  std::map<std::string, RunLog> logs_;
  bool terminal_;
  std::size_t drawn_ = 0;
  std::chrono::steady_clock::time_point next_draw_;
};

}  // namespace precast::tools
