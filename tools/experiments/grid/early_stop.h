#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

namespace precast::tools {

/// The rule that stops trials with bad results early.
struct EarlyStopOptions {
  enum class Rule { none, median, asha };
  Rule rule = Rule::none;
  /// A key of the log's epoch lines: top_1, val_loss ...
  std::string metric = "top_1";
  bool maximise = true;
  /// Number of epochs that each trial runs before the rule applies.
  std::int64_t min_epochs = 1;
  /// asha: one in `reduction` of the trials at a rung continues to the next rung, which is at
  /// `reduction` times as many epochs.
  std::int64_t reduction = 3;
};

/// Compares the results of all trials so far to decide which trials to stop. Two rules:
///
/// - `median` (Golovin et al., "Google Vizier", KDD 2017): a trial is stopped after epoch e if its
///   best result is worse than the median, over the other trials, of their mean results up to e.
///   Needs at least three other trials that have reached e.
/// - `asha` (Li et al., "A System for Massively Parallel Hyperparameter Tuning", MLSys 2020): rungs
///   are at min_epochs * reduction^k epochs. At a rung, a trial continues only if it is among the
///   best 1/reduction (at least one) of the trials that have reached the rung. A stopped trial
///   continues later if enough worse trials reach its rung.
///
/// The order in which trials run affects which of them are stopped, but not a trial's value at an
/// epoch. Not thread-safe.
class EarlyStop {
 public:
  explicit EarlyStop(EarlyStopOptions options);

  /// Records the value of `trial` at the end of epoch `epoch` (from 0). Call in the order of
  /// epochs; repeated calls are allowed.
  void report(const std::string& trial, std::int64_t epoch, double value);
  /// Whether `trial` should be stopped, given the reports so far. asha: a trial that has passed a
  /// rung is not compared at this rung again.
  [[nodiscard]] bool should_stop(const std::string& trial);
  /// asha: chooses the next trial to resume. Of the trials in `stopped` that may continue, this is
  /// the one at the furthest rung or, if several are at this rung, the best of them. The chosen
  /// trial passes its rung. @return nothing if no trial may continue.
  [[nodiscard]] std::optional<std::string> trial_to_resume(const std::vector<std::string>& stopped);
  /// The furthest rung that `trial` has passed; -1: none.
  [[nodiscard]] int passed(const std::string& trial) const;
  /// Restores a rung that `trial` had passed before the grid was restarted.
  void set_passed(const std::string& trial, int rung) { passed_[trial] = rung; }

 private:
  using Curve = std::map<std::int64_t, double>;
  [[nodiscard]] bool is_below_median(const std::string& trial) const;
  /// The value at `rung`, if `trial` has reached it.
  [[nodiscard]] std::optional<double> value_at_rung(const std::string& trial, int rung) const;
  /// The furthest rung that `trial` has reached; -1: none.
  [[nodiscard]] int reached_rung(const std::string& trial) const;
  [[nodiscard]] bool is_in_top_fraction(const std::string& trial, int rung) const;
  [[nodiscard]] std::int64_t rung_epochs(int rung) const;

  EarlyStopOptions options_;
  /// The reported values of each trial. Figures to be minimised are negated, so that larger is
  /// better.
  std::map<std::string, Curve> curves_;
  /// The furthest rung that each trial has passed.
  std::map<std::string, int> passed_;
};

}  // namespace precast::tools
