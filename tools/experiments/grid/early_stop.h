#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

namespace precast::tools {

/// When a trial that does badly is stopped before its end.
struct EarlyStopOptions {
  enum class Rule { none, median, asha };
  Rule rule = Rule::none;
  /// A key of the log's epoch lines: top_1, val_loss ...
  std::string metric = "top_1";
  bool maximise = true;
  /// Epochs that each trial gets.
  std::int64_t min_epochs = 1;
  /// asha: of the trials at a rung one in so many goes on, to a rung so many times as far.
  std::int64_t reduction = 3;
};

/// Decides from what trials have reached so far. Two rules:
///
/// - `median` (Golovin et al., "Google Vizier", KDD 2017): a trial stops after epoch e if the best
///   it has reached is worse than the median over the other trials of their means up to e. Needs
///   three others at e.
/// - `asha` (Li et al., "A System for Massively Parallel Hyperparameter Tuning", MLSys 2020): at
///   rungs of min_epochs * reduction^k epochs a trial goes on only if it is in the best
///   1/reduction of those that have come so far; one that was stopped goes on when it is
///   overtaken into that part by worse ones that came later.
///
/// Which trials are stopped depends on the order in which they run; what each has reached at an
/// epoch does not. One thread.
class EarlyStop {
 public:
  explicit EarlyStop(EarlyStopOptions options);

  /// What `trial` has reached at the end of its epoch `epoch` (from 0); again is allowed, and
  /// epochs come in order.
  void report(const std::string& trial, std::int64_t epoch, double value);
  /// Whether `trial` is to stop, as far as was reported. asha: a rung that was passed stays so.
  [[nodiscard]] bool stops(const std::string& trial);
  /// A trial of `stopped` that may go on, the best one; it then passes its rung.
  [[nodiscard]] std::optional<std::string> resumes(const std::vector<std::string>& stopped);
  /// The furthest rung that `trial` has passed; -1: none.
  [[nodiscard]] int passed(const std::string& trial) const;
  /// What an earlier start of the grid has let through stays so.
  void set_passed(const std::string& trial, int rung) { passed_[trial] = rung; }

 private:
  using Curve = std::map<std::int64_t, double>;
  [[nodiscard]] bool below_median(const std::string& trial) const;
  /// The value at `rung`, if `trial` has come so far.
  [[nodiscard]] std::optional<double> at_rung(const std::string& trial, int rung) const;
  /// The furthest rung that `trial` has come to; -1: none.
  [[nodiscard]] int reached_rung(const std::string& trial) const;
  [[nodiscard]] bool in_best_part(const std::string& trial, int rung) const;
  [[nodiscard]] std::int64_t rung_epochs(int rung) const;

  EarlyStopOptions options_;
  /// Better is larger: minimised figures with their sign changed.
  std::map<std::string, Curve> curves_;
  /// The furthest rung that each trial has passed.
  std::map<std::string, int> passed_;
};

}  // namespace precast::tools
