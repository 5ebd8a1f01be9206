#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

namespace precast::tools {

/// The rule by which trials with bad results are stopped before their end.
struct EarlyStopOptions {
  enum class Rule { none, median, asha };
  Rule rule = Rule::none;
  /// A key of the log's epoch lines: top_1, val_loss ...
  std::string metric = "top_1";
  bool maximise = true;
  /// Epochs that each trial gets before the rule applies.
  std::int64_t min_epochs = 1;
  /// asha: one in `reduction` trials at a rung continues, to a rung at `reduction` times the
  /// epochs.
  std::int64_t reduction = 3;
};

/// Decides which trials to stop, by comparing the results of all trials so far. Two rules:
///
/// - `median` (Golovin et al., "Google Vizier", KDD 2017): a trial is stopped after epoch e if its
///   best result is worse than the median, over the other trials, of their mean results up to e.
///   Needs three other trials that have reached e.
/// - `asha` (Li et al., "A System for Massively Parallel Hyperparameter Tuning", MLSys 2020): at
///   rungs of min_epochs * reduction^k epochs a trial continues only if it is in the best
///   1/reduction of those that have reached the rung; a stopped trial continues if worse trials
///   that reach the rung later move it into that part.
///
/// The order in which trials run affects which of them are stopped, but not a trial's value at an
/// epoch. Not thread-safe.
class EarlyStop {
 public:
  explicit EarlyStop(EarlyStopOptions options);

  /// Records the value of `trial` at the end of epoch `epoch` (from 0). Call in the order of
  /// epochs; repeated calls are allowed.
  void report(const std::string& trial, std::int64_t epoch, double value);
  /// Whether `trial` should be stopped, given the reports so far. asha: a rung that was passed
  /// stays passed.
  [[nodiscard]] bool stops(const std::string& trial);
  /// The best trial of `stopped` that may continue; it then passes its rung.
  [[nodiscard]] std::optional<std::string> resumes(const std::vector<std::string>& stopped);
  /// The furthest rung that `trial` has passed; -1: none.
  [[nodiscard]] int passed(const std::string& trial) const;
  /// Restores a rung that `trial` passed in an earlier start of the grid.
  void set_passed(const std::string& trial, int rung) { passed_[trial] = rung; }

 private:
  using Curve = std::map<std::int64_t, double>;
  [[nodiscard]] bool below_median(const std::string& trial) const;
  /// The value at `rung`, if `trial` has reached it.
  [[nodiscard]] std::optional<double> at_rung(const std::string& trial, int rung) const;
  /// The furthest rung that `trial` has reached; -1: none.
  [[nodiscard]] int reached_rung(const std::string& trial) const;
  [[nodiscard]] bool in_best_part(const std::string& trial, int rung) const;
  [[nodiscard]] std::int64_t rung_epochs(int rung) const;

  EarlyStopOptions options_;
  /// Larger is better: minimised figures are negated.
  std::map<std::string, Curve> curves_;
  /// The furthest rung that each trial has passed.
  std::map<std::string, int> passed_;
};

}  // namespace precast::tools
