#include "tools/trial/check.h"

#include <fmt/format.h>

#include <atomic>
#include <chrono>
#include <sstream>
#include <string_view>
#include <thread>

#include "tools/child_process.h"

namespace precast::tools {
namespace {

constexpr auto kPatience = std::chrono::minutes(10);

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
    problems.push_back({&trial, fmt::format("`train --dry-run` of trial {} ended with code {}",
                                            trial.id, run.exit_code)});
  }
  return problems;
}

}  // namespace

std::vector<TrialProblem> dry_run_problems(const std::vector<const Trial*>& trials,
                                           const std::filesystem::path& program,
                                           std::size_t at_once) {
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
    for (std::size_t i = 0; i < at_once; ++i) threads.emplace_back(work);
  }
  std::vector<TrialProblem> problems;
  for (std::size_t i = 0; i < trials.size(); ++i) {
    for (TrialProblem& problem : problems_of(*trials[i], results[i]))
      problems.push_back(std::move(problem));
  }
  return problems;
}

}  // namespace precast::tools
