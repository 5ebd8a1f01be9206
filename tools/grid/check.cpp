#include "tools/grid/check.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <atomic>
#include <sstream>
#include <thread>

#include "framework/core/error.h"
#include "tools/child_process.h"

namespace precast::tools {
namespace {

/// Each takes a second: what is drawn a thousand times is tried here so often only.
constexpr std::size_t kMostChecks = 64;
constexpr auto kPatience = std::chrono::minutes(10);

/// `command line: KEY: message` with the sweep's place of that key.
std::string place_in_sweep(const Sweep& sweep, const Trial& trial, std::string line) {
  constexpr std::string_view kError = "error: ";
  constexpr std::string_view kPlace = "command line: ";
  if (line.starts_with(kError)) line.erase(0, kError.size());
  if (!line.starts_with(kPlace)) return line;
  const std::string rest = line.substr(kPlace.size());
  const std::string key = rest.substr(0, rest.find(':'));
  return fmt::format("{}: {}", origin_of(sweep, trial, key).text(), rest);
}

std::vector<std::string> problems_of(const Sweep& sweep, const Trial& trial,
                                     const ChildResult& run) {
  std::vector<std::string> problems;
  if (run.exit_code == 0) return problems;
  std::istringstream lines(run.errors);
  for (std::string line; std::getline(lines, line);) {
    if (line.empty() || line.starts_with("warning: ")) continue;
    problems.push_back(place_in_sweep(sweep, trial, line));
  }
  if (problems.empty()) {
    problems.push_back(fmt::format("{}: `train --dry-run` of trial {} ended with code {}",
                                   sweep.path.string(), trial.id, run.exit_code));
  }
  return problems;
}

}  // namespace

std::vector<const Trial*> covering_trials(const Sweep& sweep) {
  std::set<std::pair<std::string, std::string>> missing;
  for (const Axis& axis : sweep.axes) {
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
                  const std::filesystem::path& program, int at_once) {
  std::vector<ChildResult> results(trials.size());
  std::atomic<std::size_t> next{0};
  const auto work = [&] {
    for (std::size_t i = next++; i < trials.size(); i = next++) {
      std::vector<std::string> command = {program.string()};
      for (std::string& argument : trials[i]->train_arguments())
        command.push_back(std::move(argument));
      command.emplace_back("--dry-run");
      results[i] = run_child(command, kPatience);
    }
  };
  {
    std::vector<std::jthread> threads;
    for (int i = 0; i < at_once; ++i) threads.emplace_back(work);
  }
  std::vector<std::string> problems;
  for (std::size_t i = 0; i < trials.size(); ++i) {
    for (std::string& problem : problems_of(sweep, *trials[i], results[i])) {
      if (std::ranges::find(problems, problem) == problems.end())
        problems.push_back(std::move(problem));
    }
  }
  if (!problems.empty()) throw ConfigError(fmt::format("{}", fmt::join(problems, "\n")));
}

}  // namespace precast::tools
