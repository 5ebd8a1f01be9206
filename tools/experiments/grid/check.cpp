#include "tools/experiments/grid/check.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>

#include "tools/cli/recipe_arguments.h"
#include "tools/experiments/trial/trial.h"

namespace precast::tools {
namespace {

/// At most this many trials are checked, even if an axis has a thousand drawn values, because each
/// check takes a second.
constexpr std::size_t kMaxChecks = 64;

/// In a message `command line: KEY: ...` about a key of the sweep, replaces `command line` by the
/// location of the key in the sweep. An unknown key is named `--KEY`, as on a command line.
std::string with_sweep_location(const Sweep& sweep, const TrialProblem& problem) {
  constexpr std::string_view kPlace = "command line: ";
  if (!problem.text.starts_with(kPlace)) return problem.text;
  const std::string rest = problem.text.substr(kPlace.size());
  constexpr std::string_view kDashes = "--";
  const bool is_unknown = rest.starts_with(kDashes);
  const std::size_t begin = is_unknown ? kDashes.size() : 0;
  const std::string key = rest.substr(begin, rest.find(':') - begin);
  // An unknown key is reported once, at the first of its values.
  const Origin origin = origin_of(sweep, is_unknown ? sweep.trials[0] : *problem.trial, key);
  if (origin.source == kCommandLine) return problem.text;
  return fmt::format("{}: {}", origin.text(), rest.substr(begin));
}

/// The values of the settings that may decide which keys a trial reads: all settings except those
/// in `unread` and the seed.
std::vector<std::string> read_values(const Trial& trial, const std::set<std::string>& unread) {
  std::vector<std::string> values;
  for (const Setting& setting : trial.settings) {
    if (setting.key != "training.seed" && !unread.contains(setting.key))
      values.push_back(setting.value);
  }
  return values;
}

/// Implements DryRunOptions::further. Trials that differ only in keys without effect, or in the
/// seed, read the same keys, so one of them is enough. All trials of a sweep have the same keys in
/// the same order.
std::optional<std::vector<const Trial*>> further_trials(const Sweep& sweep,
                                                        const std::vector<const Trial*>& checked,
                                                        const std::set<std::string>& unread) {
  std::set<std::vector<std::string>> known;
  for (const Trial* trial : checked) known.insert(read_values(*trial, unread));
  std::vector<const Trial*> further;
  for (const Trial& trial : sweep.trials) {
    if (!known.insert(read_values(trial, unread)).second) continue;
    further.push_back(&trial);
    if (checked.size() + further.size() > kMaxChecks) return std::nullopt;
  }
  return further;
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
  while (chosen.size() < kMaxChecks && (!missing.empty() || chosen.empty())) {
    const auto best = std::ranges::max_element(sweep.trials, {}, gain);
    if (best == sweep.trials.end() || (gain(*best) == 0 && !chosen.empty())) break;
    chosen.push_back(&*best);
    for (const Setting& setting : best->settings) missing.erase({setting.key, setting.value});
  }
  std::ranges::sort(chosen);  // pointers into one vector, so this is the sweep's order
  return chosen;
}

bool check_trials(const Sweep& sweep, const std::vector<const Trial*>& trials,
                  DryRunOptions options) {
  options.further = [&](const std::vector<const Trial*>& checked,
                        const std::set<std::string>& unread) {
    return further_trials(sweep, checked, unread);
  };
  return check_by_dry_run(trials, options, [&](const TrialProblem& problem) {
    return with_sweep_location(sweep, problem);
  });
}

}  // namespace precast::tools
