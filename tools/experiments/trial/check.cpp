#include "tools/experiments/trial/check.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <future>
#include <iterator>
#include <map>
#include <sstream>
#include <string_view>
#include <utility>

#include "framework/core/error.h"
#include "framework/core/log.h"
#include "framework/process/child_process.h"

namespace precast::tools {
namespace {

constexpr auto kPatience = std::chrono::minutes(10);
/// Each dry run takes about 100 MB and one core for a second.
constexpr std::size_t kMostAtOnce = 16;

std::vector<TrialProblem> problems_of(const Trial& trial, const ChildResult& run) {
  constexpr std::string_view kError = "error: ";
  std::vector<TrialProblem> problems;
  if (run.exit_code == 0) return problems;
  std::istringstream lines(run.errors);
  for (std::string line; std::getline(lines, line);) {
    if (line.empty() || line.starts_with("warning: ")) continue;
    if (line.starts_with(kError)) line.erase(0, kError.size());
    problems.push_back({&trial, std::move(line)});
  }
  if (problems.empty()) {
    problems.push_back(
        {&trial, fmt::format("expected `train --dry-run` of trial {} to exit with code 0, got {}",
                             trial.id, run.exit_code)});
  }
  return problems;
}

/// The warnings of a dry run about keys of its command line that have no effect, by key.
std::map<std::string, std::string> unread_keys(const ChildResult& run) {
  constexpr std::string_view kWarning = "warning: ";
  constexpr std::string_view kBeforeKey = "warning: command line: ";
  constexpr std::string_view kAfterKey = ": it has no effect";
  std::map<std::string, std::string> unread;
  std::istringstream lines(run.errors);
  for (std::string line; std::getline(lines, line);) {
    const std::size_t end = line.find(kAfterKey);
    if (!line.starts_with(kBeforeKey) || end == std::string::npos) continue;
    unread.emplace(line.substr(kBeforeKey.size(), end - kBeforeKey.size()),
                   line.substr(kWarning.size()));
  }
  return unread;
}

/// The warnings of the first trial about keys that have no effect in any of the trials.
std::vector<TrialProblem> unread_by_all(const std::vector<const Trial*>& trials,
                                        const std::vector<ChildResult>& results) {
  std::vector<TrialProblem> problems;
  if (trials.empty()) return problems;
  std::map<std::string, std::string> unread = unread_keys(results[0]);
  for (const ChildResult& run : results) {
    const std::map<std::string, std::string> others = unread_keys(run);
    std::erase_if(unread, [&](const auto& entry) { return !others.contains(entry.first); });
  }
  for (auto& [key, warning] : unread) problems.push_back({trials[0], std::move(warning)});
  return problems;
}

/// Results of the dry runs, in the order of the trials.
std::vector<ChildResult> dry_run(const std::vector<const Trial*>& trials,
                                 const std::filesystem::path& program, std::size_t at_once) {
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
  // Futures rethrow the exceptions of their threads in this thread.
  std::vector<std::future<void>> workers;
  const std::size_t count = std::min({at_once, kMostAtOnce, trials.size()});
  for (std::size_t i = 0; i < count; ++i) workers.push_back(std::async(std::launch::async, work));
  for (std::future<void>& worker : workers) worker.get();
  return results;
}

}  // namespace

void check_by_dry_run(const std::vector<const Trial*>& trials, const std::filesystem::path& program,
                      std::size_t at_once, UnreadSettings unread,
                      const std::function<std::string(const TrialProblem&)>& text) {
  const std::vector<ChildResult> results = dry_run(trials, program, at_once);
  std::vector<TrialProblem> problems;
  for (std::size_t i = 0; i < trials.size(); ++i)
    std::ranges::move(problems_of(*trials[i], results[i]), std::back_inserter(problems));
  std::vector<TrialProblem> unread_settings = unread_by_all(trials, results);
  if (unread == UnreadSettings::refuse) {
    std::ranges::move(unread_settings, std::back_inserter(problems));
  } else {
    for (const TrialProblem& problem : unread_settings) log_warning("{}", text(problem));
  }
  std::vector<std::string> told;
  for (const TrialProblem& problem : problems) {
    std::string line = text(problem);
    if (std::ranges::find(told, line) == told.end()) told.push_back(std::move(line));
  }
  if (!told.empty()) throw ConfigError(fmt::format("{}", fmt::join(told, "\n")));
}

}  // namespace precast::tools
