#include "tools/experiments/trial/check.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdlib>
#include <future>
#include <iterator>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>
#include <sstream>
#include <string_view>
#include <utility>

#include "framework/core/log.h"
#include "framework/process/child_process.h"
#include "framework/process/stop_signals.h"
#include "tools/cli/recipe_arguments.h"

namespace precast::tools {
namespace {

using nlohmann::ordered_json;

constexpr auto kDryRunTimeout = std::chrono::minutes(10);
/// Each dry run takes about 100 MB and one core for a second.
constexpr std::size_t kMaxConcurrentChecks = 16;
/// A plan has an entry for each epoch: 10,000 epochs are 1.3 MB of JSON.
constexpr std::size_t kMaxBytes = 64'000'000;

/// What a dry run found.
struct DryRunResult {
  int exit_code = 0;
  std::string errors;
  std::size_t output_bytes = 0;
  /// The JSON object that the dry run printed; null if it printed something else, or more than
  /// kMaxBytes.
  ordered_json plan;
};

std::vector<TrialProblem> problems_of(const Trial& trial, const DryRunResult& finding) {
  constexpr std::string_view kError = "error: ";
  std::vector<TrialProblem> problems;
  if (finding.exit_code == 0 && finding.plan.is_object()) return problems;
  if (finding.exit_code == 0) {
    // Without the plan, the keys and the device could not be checked.
    problems.push_back({&trial,
                        fmt::format("trial {}: expected a JSON object of at most {} bytes from "
                                    "`train --dry-run --json`, got {} bytes",
                                    trial.id, kMaxBytes, finding.output_bytes),
                        ExitCode::usage});
    return problems;
  }
  const auto code = static_cast<ExitCode>(finding.exit_code);
  std::istringstream lines(finding.errors);
  for (std::string line; std::getline(lines, line);) {
    if (line.empty() || line.starts_with("warning: ")) continue;
    if (line.starts_with(kError)) line.erase(0, kError.size());
    problems.push_back({&trial, std::move(line), code});
  }
  if (problems.empty()) {
    problems.push_back(
        {&trial,
         fmt::format("expected `train --dry-run` of trial {} to exit with code 0, got {}", trial.id,
                     finding.exit_code),
         code});
  }
  return problems;
}

/// Whether the trial requires a GPU. Its dry run succeeds even on a host without a GPU, because the
/// plan may be for another machine.
bool needs_gpu(const DryRunResult& finding) {
  if (finding.exit_code != 0 || !finding.plan.contains("config")) return false;
  const ordered_json& config = finding.plan.at("config");
  return config.is_object() && config.value("training.device", "") == "cuda";
}

/// Keys without effect, each with a message: its location and the reason.
using UnreadTexts = std::map<std::string, std::string>;

/// The keys of a dry run's command line that have no effect. A recipe's file may contain
/// `ignored_keys`.
UnreadTexts unread_keys(const DryRunResult& finding) {
  UnreadTexts unread;
  for (const char* list : {"unread_keys", "ignored_keys"}) {
    if (!finding.plan.contains(list)) continue;
    for (const ordered_json& entry : finding.plan.at(list)) {
      if (!entry.is_object() || entry.value("place", "") != kCommandLine) continue;
      const std::string key = entry.value("key", "");
      unread.emplace(key, fmt::format("{}: {}: {}", kCommandLine, key, entry.value("reason", "")));
    }
  }
  return unread;
}

/// The keys that have no effect in any of the trials, with the messages of the first trial.
UnreadTexts unread_by_all(const std::vector<DryRunResult>& findings) {
  if (findings.empty()) return {};
  UnreadTexts unread = unread_keys(findings[0]);
  for (const DryRunResult& finding : findings) {
    const UnreadTexts others = unread_keys(finding);
    std::erase_if(unread, [&](const auto& entry) { return !others.contains(entry.first); });
  }
  return unread;
}

/// While an object exists, the programs that this process starts see only the GPUs of a slot.
class ScopedVisibleGpus {
 public:
  explicit ScopedVisibleGpus(const Slot& slot) {
    if (const char* const before = std::getenv(kVariable); before != nullptr) before_ = before;
    ::setenv(kVariable, slot.gpu.c_str(), 1);
  }
  ScopedVisibleGpus(const ScopedVisibleGpus&) = delete;
  ScopedVisibleGpus& operator=(const ScopedVisibleGpus&) = delete;
  ~ScopedVisibleGpus() {
    if (before_)
      ::setenv(kVariable, before_->c_str(), 1);
    else
      ::unsetenv(kVariable);
  }

 private:
  static constexpr const char* kVariable = "CUDA_VISIBLE_DEVICES";
  std::optional<std::string> before_;
};

DryRunResult dry_run(const Trial& trial, const std::filesystem::path& program) {
  std::vector<std::string> command = {program.string()};
  for (std::string& argument : trial.train_arguments()) command.push_back(std::move(argument));
  command.insert(command.end(), {"--dry-run", "--json"});
  ChildResult run = run_child(command, kDryRunTimeout, kMaxBytes, &StopSignals::requested());
  DryRunResult finding{.exit_code = run.exit_code,
                       .errors = std::move(run.errors),
                       .output_bytes = run.output.size(),
                       .plan = {}};
  auto plan = ordered_json::parse(run.output, nullptr, /*allow_exceptions=*/false);
  if (plan.is_object()) finding.plan = std::move(plan);
  return finding;
}

/// Returns the results of all dry runs, in the order of the trials. After a request to stop
/// (StopSignals), some are empty.
std::vector<DryRunResult> dry_run_all(const std::vector<const Trial*>& trials,
                                      const DryRunOptions& options) {
  std::vector<DryRunResult> findings(trials.size());
  std::atomic<std::size_t> next{0};
  const auto work = [&] {
    for (std::size_t i = next++; i < trials.size() && !StopSignals::requested(); i = next++)
      findings[i] = dry_run(*trials[i], options.program);
  };
  // Set before the threads start, because they read the environment.
  const ScopedVisibleGpus gpus(options.slots.front());
  // Futures rethrow the exceptions of their threads in this thread.
  std::vector<std::future<void>> workers;
  const std::size_t count = std::min({options.slots.size(), kMaxConcurrentChecks, trials.size()});
  for (std::size_t i = 0; i < count; ++i) workers.push_back(std::async(std::launch::async, work));
  for (std::future<void>& worker : workers) worker.get();
  return findings;
}

/// The trials that were checked, and what their dry runs found.
struct Checked {
  std::vector<const Trial*> trials;
  std::vector<DryRunResult> findings;
  /// The keys without effect, and whether it is certain that no trial reads them.
  UnreadTexts unread;
  bool is_certain = true;
};

/// Checks the trials and, while some keys have no effect in any of them, further trials.
Checked check_all(std::vector<const Trial*> trials, const DryRunOptions& options) {
  Checked checked{.trials = std::move(trials), .findings = {}, .unread = {}};
  checked.findings = dry_run_all(checked.trials, options);
  checked.unread = unread_by_all(checked.findings);
  while (!checked.unread.empty() && options.further && !StopSignals::requested()) {
    std::set<std::string> keys;
    for (const auto& [key, text] : checked.unread) keys.insert(key);
    const auto further = options.further(checked.trials, keys);
    checked.is_certain = further.has_value();
    if (!further || further->empty()) break;
    std::ranges::move(dry_run_all(*further, options), std::back_inserter(checked.findings));
    std::ranges::copy(*further, std::back_inserter(checked.trials));
    checked.unread = unread_by_all(checked.findings);
  }
  return checked;
}

using TextOf = std::function<std::string(const TrialProblem&)>;

/// The messages of the problems, without duplicates.
std::vector<std::string> unique_messages(const std::vector<TrialProblem>& problems,
                                         const TextOf& text) {
  std::vector<std::string> messages;
  for (const TrialProblem& problem : problems) {
    std::string line = text(problem);
    if (std::ranges::find(messages, line) == messages.end()) messages.push_back(std::move(line));
  }
  return messages;
}

/// @throws Error (see check_by_dry_run())
[[noreturn]] void reject(const std::vector<TrialProblem>& problems, const TextOf& text) {
  constexpr ExitCode kPassedOn[] = {ExitCode::dataset_invalid, ExitCode::checkpoint_invalid,
                                    ExitCode::io, ExitCode::environment};
  const ExitCode first = problems.front().exit_code;
  const bool is_passed_on = std::ranges::find(kPassedOn, first) != std::ranges::end(kPassedOn) &&
                            std::ranges::all_of(problems, [&](const TrialProblem& one) {
                              return one.exit_code == first;
                            });
  throw Error(fmt::format("{}", fmt::join(unique_messages(problems, text), "\n")),
              is_passed_on ? first : ExitCode::usage);
}

}  // namespace

bool check_by_dry_run(std::vector<const Trial*> trials, const DryRunOptions& options,
                      const std::function<std::string(const TrialProblem&)>& text) {
  require(!options.slots.empty(), "there is a slot");
  const StopSignals signals(StopSignals::kTraining);
  Checked checked = check_all(std::move(trials), options);
  if (StopSignals::requested()) return false;
  const bool has_gpus = !options.slots.front().gpu.empty();
  std::vector<TrialProblem> problems, warnings;
  for (std::size_t i = 0; i < checked.trials.size(); ++i) {
    for (TrialProblem& problem : problems_of(*checked.trials[i], checked.findings[i])) {
      const bool may_suit_another_host =
          !options.trains_here && problem.exit_code == ExitCode::environment;
      (may_suit_another_host ? warnings : problems).push_back(std::move(problem));
    }
    if (options.trains_here && !has_gpus && needs_gpu(checked.findings[i])) {
      problems.push_back({checked.trials[i],
                          "training.device: expected a GPU that the trials can use, got none. Set "
                          "it to auto or cpu",
                          ExitCode::environment});
    }
  }
  const bool rejects_unread = options.unread == UnreadSettings::reject && checked.is_certain;
  for (auto& [key, why] : checked.unread)
    (rejects_unread ? problems : warnings)
        .push_back({checked.trials[0], std::move(why), ExitCode::usage});
  for (const std::string& warning : unique_messages(warnings, text)) log_warning("{}", warning);
  if (!problems.empty()) reject(problems, text);
  return true;
}

}  // namespace precast::tools
