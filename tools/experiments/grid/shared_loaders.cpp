#include "tools/experiments/grid/shared_loaders.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <fstream>
#include <map>
#include <nlohmann/json.hpp>
#include <string_view>
#include <thread>
#include <utility>

#include "data/ring/consumer.h"
#include "data/ring/layout.h"
#include "framework/core/error.h"
#include "framework/core/file.h"
#include "framework/core/log.h"
#include "framework/core/rng.h"

namespace precast::tools {
namespace {

using nlohmann::ordered_json;
using Clock = std::chrono::steady_clock;

constexpr const char* kLoaderFolder = "loaders";
/// How long a loader waits for the other trials of its cohort after the first trial has joined.
constexpr int kJoinTimeoutS = 60;
constexpr auto kMaxShutdownTime = std::chrono::seconds(5);

/// Keys and sections whose values can change batches.
constexpr std::string_view kLoadingKeys[] = {"data.",
                                             "pipeline.",
                                             "resolution.",
                                             "dist.",
                                             "methods",
                                             "plugins",
                                             "model.in_channels",
                                             "training.seed",
                                             "training.batch_size",
                                             "training.global_batch_size",
                                             "training.epochs",
                                             "training.device",
                                             "training.distributed"};

bool can_change_batches(const Setting& setting) {
  return std::ranges::any_of(kLoadingKeys, [&](std::string_view entry) {
    return entry.ends_with('.') ? setting.key.starts_with(entry) : setting.key == entry;
  });
}

/// The last record of a loader's output; null if there is none.
ordered_json last_record(const std::filesystem::path& output) {
  std::ifstream file(output);
  ordered_json last;
  for (std::string line; std::getline(file, line);) {
    if (!line.starts_with('{')) continue;
    ordered_json record = ordered_json::parse(line, nullptr, /*allow_exceptions=*/false);
    if (record.is_object() && record.contains("samples_decoded")) last = std::move(record);
  }
  return last;
}

/// Whether a loader has loaded its last epoch, so that its trials are about to end.
bool has_loaded_all(const std::filesystem::path& output) {
  const ordered_json last = last_record(output);
  return last.is_object() && last.value("epoch", -1) + 1 == last.value("epochs", 0);
}

std::string first_error(const std::filesystem::path& output) {
  std::ifstream file(output);
  for (std::string line; std::getline(file, line);)
    if (line.find("error") != line.npos) return line;
  return "see " + output.string();
}

}  // namespace

std::string loading_key_of(const Trial& trial) {
  std::string text = trial.recipe.string();
  std::vector<Setting> settings = trial.settings;
  std::ranges::sort(settings, {}, &Setting::key);
  for (const Setting& setting : settings)
    if (can_change_batches(setting)) text += fmt::format("\n{}={}", setting.key, setting.value);
  return text;
}

std::vector<Trial> order_by_cohort(const Sweep& sweep) {
  std::map<std::string, std::size_t> groups;
  std::vector<std::pair<std::size_t, const Trial*>> order;
  for (const Trial& trial : sweep.trials)
    order.emplace_back(groups.emplace(loading_key_of(trial), groups.size()).first->second, &trial);
  std::ranges::stable_sort(order, {}, &std::pair<std::size_t, const Trial*>::first);
  std::vector<Trial> trials;
  for (const auto& [group, trial] : order) trials.push_back(*trial);
  return trials;
}

SharedLoaders::SharedLoaders(const Sweep& sweep, std::filesystem::path program,
                             const std::vector<Slot>& slots,
                             std::chrono::milliseconds start_timeout)
    : folder_(sweep.folder), program_(std::move(program)), start_timeout_(start_timeout) {
  std::set<int> all;
  for (const Slot& slot : slots) all.insert(slot.cores.begin(), slot.cores.end());
  cores_.assign(all.begin(), all.end());
}

SharedLoaders::~SharedLoaders() {
  for (const Cohort& cohort : cohorts_) cohort.process->request_stop();
  // Before they end, the loaders record how many samples they have loaded.
  const auto until = Clock::now() + kMaxShutdownTime;
  const auto runs = [](const Cohort& cohort) { return !cohort.process->poll(); };
  while (std::ranges::any_of(cohorts_, runs) && Clock::now() < until)
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
}

SharedLoaders::Cohort* SharedLoaders::newest(const std::string& loading_key) {
  for (auto cohort = cohorts_.rbegin(); cohort != cohorts_.rend(); ++cohort)
    if (cohort->loading_key == loading_key) return &*cohort;
  return nullptr;
}

bool SharedLoaders::is_starting(Cohort& cohort) {
  if (cohort.ready) return false;
  if (cohort.process->poll()) {
    failed_keys_.insert(cohort.loading_key);
    return false;
  }
  try {
    static_cast<void>(data::read_ring_description(cohort.ring));
    cohort.ready = true;
  } catch (const Error&) {
    if (Clock::now() - cohort.start < start_timeout_) return true;
    cohort.ready = true;
    log_warning(
        "expected a loader process to create its ring within {} s, got none ({}). Its trials load "
        "their batches themselves",
        std::chrono::duration<double>(start_timeout_).count(), first_error(cohort.output));
  }
  return false;
}

std::optional<std::vector<std::string>> SharedLoaders::prepare(const NextStart& next) {
  for (Cohort& cohort : cohorts_)
    if (is_starting(cohort)) return std::nullopt;
  const std::string loading_key = loading_key_of(next.trial);
  if (failed_keys_.contains(loading_key)) return std::vector<std::string>{};
  Cohort* const last = newest(loading_key);
  const bool alive = last != nullptr && !last->stopped && !last->process->poll();
  if (alive && last->members < last->size) {
    ++last->members;
    return join(*last, next.trial);
  }
  const auto waiting = static_cast<std::size_t>(std::ranges::count_if(
      next.waiting, [&](const Trial* trial) { return loading_key_of(*trial) == loading_key; }));
  const std::size_t size = std::min<std::size_t>(
      data::kMaxRingConsumers, 1 + std::min(waiting, next.free_slots + slots_free_soon()));
  if (size > 1) {
    start(next, loading_key, size);
    return std::nullopt;
  }
  return alive ? join(*last, next.trial) : std::vector<std::string>{};
}

/// Number of trials whose slots will be free soon, because their loader has loaded its last epoch
/// or has ended.
std::size_t SharedLoaders::slots_free_soon() const {
  std::size_t count = 0;
  for (const Cohort& cohort : cohorts_)
    if (cohort.process->poll() || has_loaded_all(cohort.output)) count += cohort.running.size();
  return count;
}

void SharedLoaders::start(const NextStart& next, const std::string& loading_key, std::size_t size) {
  const std::string ring =
      fmt::format("grid-{:016x}-{}-{}", derived_seed(0, folder_.string()), ::getpid(), started_++);
  create_folders(folder_ / kLoaderFolder);
  const std::filesystem::path output = folder_ / kLoaderFolder / ring;
  std::vector<std::string> command = {program_.string(), "serve"};
  if (!next.trial.recipe.empty()) command.push_back(next.trial.recipe.string());
  for (const Setting& setting : next.trial.settings)
    command.push_back(fmt::format("--{}={}", setting.key, setting.value));
  for (std::string argument :
       {std::string("--as"), ring, std::string("--consumers"), std::to_string(size),
        std::string("--wait-s"), std::to_string(kJoinTimeoutS), std::string("--json")})
    command.push_back(std::move(argument));
  const Slot slot{.name = ring, .gpu = next.slot.gpu, .cores = cores_};
  cohorts_.push_back({.loading_key = loading_key,
                      .ring = ring,
                      .output = output,
                      .process = std::make_unique<TrialProcess>(command, slot, output, -1),
                      .start = Clock::now(),
                      .size = size});
}

std::vector<std::string> SharedLoaders::join(Cohort& cohort, const Trial& trial) {
  cohort.running.insert(trial.id);
  return {"--ring", cohort.ring};
}

void SharedLoaders::ended(const Trial& trial) {
  for (Cohort& cohort : cohorts_) {
    if (cohort.running.erase(trial.id) == 0 || !cohort.running.empty()) continue;
    // No trial is left to read the remaining batches.
    cohort.stopped = true;
    cohort.process->request_stop();
  }
}

void SharedLoaders::update() {
  for (auto cohort = cohorts_.begin(); cohort != cohorts_.end();) {
    const std::optional<ProcessEnd> end = cohort->process->poll();
    // Recorded here too, because is_starting() misses the failure if prepare() is not called before
    // the cohort is erased.
    if (end && !cohort->ready) failed_keys_.insert(cohort->loading_key);
    if (end && end->exit_code != 0 && !std::exchange(cohort->stopped, true))
      log_warning(
          "a loader process ended with exit code {}: {}. Its trials load their batches "
          "themselves",
          end->exit_code, first_error(cohort->output));
    // While trials of the cohort run, slots_free_soon() needs it to determine the size of the next
    // cohort.
    if (end && cohort->running.empty())
      cohort = cohorts_.erase(cohort);
    else
      ++cohort;
  }
}

std::optional<SharedDecodes> count_shared_decodes(const std::filesystem::path& folder) {
  std::error_code missing;
  std::optional<SharedDecodes> sum;
  for (const auto& output : std::filesystem::directory_iterator(folder / kLoaderFolder, missing)) {
    if (!sum) sum.emplace();
    const ordered_json last = last_record(output.path());
    if (!last.is_object()) continue;
    sum->decoded += last.value("samples_decoded", std::uint64_t{0});
    sum->delivered += last.value("samples_delivered", std::uint64_t{0});
  }
  return sum;
}

}  // namespace precast::tools
