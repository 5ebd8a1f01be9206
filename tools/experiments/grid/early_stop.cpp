#include "tools/experiments/grid/early_stop.h"

#include <algorithm>
#include <cmath>

#include "tools/cli/median.h"

namespace precast::tools {
namespace {

/// The median of fewer other trials is not meaningful.
constexpr std::size_t kMinOthers = 3;
constexpr int kMaxRungs = 60;

}  // namespace

EarlyStop::EarlyStop(EarlyStopOptions options) : options_(std::move(options)) {}

void EarlyStop::report(const std::string& trial, std::int64_t epoch, double value) {
  const double better = options_.maximise ? value : -value;
  curves_[trial][epoch] = std::isfinite(better) ? better : -HUGE_VAL;
}

bool EarlyStop::should_stop(const std::string& trial) {
  if (!curves_.contains(trial)) return false;
  if (options_.rule == EarlyStopOptions::Rule::median) return is_below_median(trial);
  if (options_.rule != EarlyStopOptions::Rule::asha) return false;
  const int rung = reached_rung(trial);
  if (rung <= passed(trial)) return false;
  if (!is_in_top_fraction(trial, rung)) return true;
  passed_[trial] = rung;
  return false;
}

std::optional<std::string> EarlyStop::trial_to_resume(const std::vector<std::string>& stopped) {
  if (options_.rule != EarlyStopOptions::Rule::asha) return std::nullopt;
  std::optional<std::string> best;
  int best_rung = -1;
  for (const std::string& trial : stopped) {
    const int rung = reached_rung(trial);
    if (rung < 0 || !is_in_top_fraction(trial, rung)) continue;
    // The furthest rung comes first, as in the paper, then the better value.
    if (rung < best_rung) continue;
    if (rung == best_rung && *value_at_rung(trial, rung) <= *value_at_rung(*best, rung)) continue;
    best = trial;
    best_rung = rung;
  }
  if (best) passed_[*best] = best_rung;
  return best;
}

int EarlyStop::passed(const std::string& trial) const {
  const auto rung = passed_.find(trial);
  return rung == passed_.end() ? -1 : rung->second;
}

bool EarlyStop::is_below_median(const std::string& trial) const {
  const Curve& own = curves_.at(trial);
  const std::int64_t epoch = own.rbegin()->first;
  if (epoch + 1 < options_.min_epochs) return false;
  std::vector<double> means;
  for (const auto& [other, curve] : curves_) {
    if (other == trial || curve.rbegin()->first < epoch) continue;
    double sum = 0, count = 0;
    for (const auto& [at, value] : curve) {
      if (at > epoch) break;
      sum += value;
      ++count;
    }
    // The other trial's log may lack the figure in all epochs up to this one.
    if (count > 0) means.push_back(sum / count);
  }
  if (means.size() < kMinOthers) return false;
  const auto best = std::ranges::max_element(own, {}, &Curve::value_type::second);
  return best->second < median(means);
}

std::int64_t EarlyStop::rung_epochs(int rung) const {
  double epochs = static_cast<double>(options_.min_epochs);
  for (int i = 0; i < rung; ++i) epochs *= static_cast<double>(options_.reduction);
  return epochs < 1e15 ? static_cast<std::int64_t>(epochs) : INT64_MAX;
}

std::optional<double> EarlyStop::value_at_rung(const std::string& trial, int rung) const {
  const auto curve = curves_.find(trial);
  if (curve == curves_.end()) return std::nullopt;
  const auto value = curve->second.find(rung_epochs(rung) - 1);
  if (value == curve->second.end()) return std::nullopt;
  return value->second;
}

int EarlyStop::reached_rung(const std::string& trial) const {
  int rung = -1;
  while (rung + 1 < kMaxRungs && value_at_rung(trial, rung + 1)) ++rung;
  return rung;
}

bool EarlyStop::is_in_top_fraction(const std::string& trial, int rung) const {
  const double own = *value_at_rung(trial, rung);
  std::int64_t reached = 0, better = 0;
  for (const auto& [other, curve] : curves_) {
    const std::optional<double> value = value_at_rung(other, rung);
    if (!value) continue;
    ++reached;
    // Among trials with equal values, the first by name counts as better.
    if (*value > own || (*value == own && other < trial)) ++better;
  }
  // At least the best trial passes. The first trial that reaches a rung therefore always passes it.
  return better < std::max<std::int64_t>(1, reached / options_.reduction);
}

}  // namespace precast::tools
