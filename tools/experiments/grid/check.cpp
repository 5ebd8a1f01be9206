#include "tools/experiments/grid/check.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>
#include <string_view>
#include <utility>

namespace precast::tools {
namespace {

/// Each check takes a second, so at most this many trials are checked, even if an axis has a
/// thousand drawn values.
constexpr std::size_t kMostChecks = 64;

/// In a message `command line: KEY: ...`, replaces `command line` by the location of the key in the
/// sweep.
std::string place_in_sweep(const Sweep& sweep, const TrialProblem& problem) {
  constexpr std::string_view kPlace = "command line: ";
  if (!problem.text.starts_with(kPlace)) return problem.text;
  const std::string rest = problem.text.substr(kPlace.size());
  const std::string key = rest.substr(0, rest.find(':'));
  return fmt::format("{}: {}", origin_of(sweep, *problem.trial, key).text(), rest);
}

}  // namespace

std::vector<const Trial*> covering_trials(const Sweep& sweep) {
  std::set<std::pair<std::string, std::string>> missing;
  for (const SweepAxis& axis : sweep.axes) {
    for (const AxisValue& value : axis.values) missing.emplace(axis.key, value.text);
  }
  std::vector<const Trial*> chosen;
  const auto gain = [&](const Trial& trial) {
    return std::ranges::count_if(trial.settings, [&](const Setting& setting) {
      return missing.contains({setting.key, setting.value});
    });
  };
  while (chosen.size() < kMostChecks && (!missing.empty() || chosen.empty())) {
    const auto best = std::ranges::max_element(sweep.trials, {}, gain);
    if (best == sweep.trials.end() || (gain(*best) == 0 && !chosen.empty())) break;
    chosen.push_back(&*best);
    for (const Setting& setting : best->settings) missing.erase({setting.key, setting.value});
  }
  std::ranges::sort(chosen);  // they are elements of one vector
  return chosen;
}

void check_trials(const Sweep& sweep, const std::vector<const Trial*>& trials,
                  DryRunOptions options) {
  // A setting that no checked trial reads may have an effect in other trials.
  options.unread =
      trials.size() == sweep.trials.size() ? UnreadSettings::refuse : UnreadSettings::warn;
  check_by_dry_run(trials, options,
                   [&](const TrialProblem& problem) { return place_in_sweep(sweep, problem); });
}

}  // namespace precast::tools
