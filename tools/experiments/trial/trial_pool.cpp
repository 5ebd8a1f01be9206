#include "tools/experiments/trial/trial_pool.h"

#include <fmt/format.h>
#include <poll.h>

#include <algorithm>
#include <csignal>
#include <cstdint>
#include <system_error>

#include "framework/core/file.h"
#include "framework/core/format.h"
#include "framework/core/log.h"
#include "framework/core/unix_time.h"
#include "framework/process/signal_pipe.h"

namespace precast::tools {
namespace {

using nlohmann::ordered_json;

/// The maximum number of starts of a trial that is preempted again and again: it exits with code
/// 85, although this job did not ask it to stop.
constexpr int kMaxStarts = 1000;
constexpr int kPollIntervalMs = 200;
constexpr std::chrono::milliseconds kNoPause{0};
/// A waiting trial that may start within this time counts as one that could start now.
constexpr auto kReadyWindow = std::chrono::seconds(1);
constexpr auto kPreparePause = std::chrono::milliseconds(100);
constexpr auto kLockPause = std::chrono::milliseconds(500);
constexpr auto kLockNoticeDelay = std::chrono::seconds(5);
/// How long trials may take to save a checkpoint when an error ends the pool.
constexpr auto kSaveTimeout = std::chrono::minutes(2);

std::filesystem::path output_of(const Trial& trial) {
  return trial.run_folder() / "output";
}

/// The size of the file; 0 if there is none.
std::uintmax_t size_or_zero(const std::filesystem::path& path) {
  std::error_code missing;
  const std::uintmax_t bytes = std::filesystem::file_size(path, missing);
  return missing ? 0 : bytes;
}

/// The modification time of `path` in Unix seconds.
double written_at(const std::filesystem::path& path) {
  const auto time = std::chrono::file_clock::to_sys(std::filesystem::last_write_time(path));
  return std::chrono::duration<double>(time.time_since_epoch()).count();
}

ordered_json settings_of(const Trial& trial) {
  ordered_json settings = ordered_json::object();
  for (const Setting& setting : trial.settings) settings[setting.key] = setting.value;
  return settings;
}

TrialOutcome outcome_of(const ProcessEnd& end, bool has_summary) {
  const TrialOutcome outcome = classify_exit(end.exit_code, end.signal);
  // A program that ends with exit code 0 but without a summary is not `precast train`.
  return outcome == TrialOutcome::done && !has_summary ? TrialOutcome::failed : outcome;
}

}  // namespace

PoolWatcher::~PoolWatcher() = default;

void PoolWatcher::show_message(const std::string& text) {
  log_info("{}", text);
}

TrialPool::TrialPool(PoolOptions options, Journal& journal,
                     std::map<std::string, TrialState>& states, PoolWatcher& watcher)
    : options_(std::move(options)), journal_(journal), states_(states), watcher_(watcher) {
  require(!options_.slots.empty(), "there is a slot");
}

ExitCode TrialPool::run(std::span<const Trial> trials) {
  SignalPipe signals({SIGCHLD, SIGTERM, SIGINT, SIGHUP, SIGUSR1});
  trials_ = trials;
  for (const Trial& trial : trials) {
    if (states_[trial.id].status == TrialStatus::waiting)
      waiting_.push_back({&trial, Clock::now(), std::nullopt});
  }
  try {
    run_all(signals);
  } catch (...) {
    save_running(signals);
    throw;
  }
  return result();
}

void TrialPool::save_running(SignalPipe& signals) {
  interrupted_ = true;
  stop_all();
  const auto deadline = Clock::now() + kSaveTimeout;
  while (!running_.empty() && Clock::now() < deadline) {
    wait_for_events(signals.fd());
    handle_signals(signals.take());
    std::erase_if(running_, [](RunningTrial& one) { return one.process->poll().has_value(); });
  }
}

void TrialPool::run_all(SignalPipe& signals) {
  while (true) {
    fill_slots();
    notify([&] { watcher_.update(running_, waiting_.size()); });
    if (running_.empty() && (stopping_ || waiting_.empty())) break;
    wait_for_events(signals.fd());
    handle_signals(signals.take());
    finish_ended();
    for (RunningTrial& running : running_) {
      if (stopping_ || running.stopped_early || !watcher_.should_stop(*running.trial)) continue;
      running.stopped_early = true;
      running.process->request_stop();
    }
  }
}

void TrialPool::notify(const std::function<void()>& watcher) {
  try {
    watcher();
  } catch (const std::exception& error) {
    log_warning("{}", error.what());
  }
}

const Slot* TrialPool::free_slot() const {
  for (const Slot& slot : options_.slots) {
    if (std::ranges::none_of(running_, [&](const auto& busy) { return busy.slot == &slot; }))
      return &slot;
  }
  return nullptr;
}

void TrialPool::fill_slots() {
  for (const Slot* slot = free_slot(); slot != nullptr && !stopping_; slot = free_slot()) {
    queue_resumed();
    const std::size_t before = running_.size();
    start_next(*slot);
    if (running_.size() == before) return;
  }
}

void TrialPool::queue_resumed() {
  const std::optional<std::string> id = watcher_.trial_to_resume();
  if (!id) return;
  const auto trial = std::ranges::find(trials_, *id, &Trial::id);
  if (trial == trials_.end()) return;
  states_[*id].status = TrialStatus::waiting;
  waiting_.push_front({&*trial, Clock::now(), std::nullopt});
}

void TrialPool::start_next(const Slot& slot) {
  for (auto next = waiting_.begin(); next != waiting_.end();) {
    if (next->ready > Clock::now()) {
      ++next;
      continue;
    }
    const std::size_t before = running_.size();
    if (start(*next, slot)) {
      next = waiting_.erase(next);
      if (running_.size() > before) return;
    } else {
      ++next;
    }
  }
}

bool TrialPool::start(Waiting& waiting, const Slot& slot) {
  const Trial& trial = *waiting.trial;
  std::optional<FileLock> lock;
  try {
    create_folders(trial.run_folder());
    lock = FileLock::try_lock(trial.run_folder() / "lock");
  } catch (const IoError& error) {
    record_start(trial, slot);
    record_failed_start(trial, error);
    return true;
  }
  if (!lock) {
    wait_for_lock(waiting);
    return false;
  }
  if (const auto summary = read_summary(trial.run_folder())) {
    adopt_result(trial, *summary);
    return true;
  }
  const auto extra_arguments = prepare(trial, slot);
  if (!extra_arguments) {
    waiting.ready = Clock::now() + kPreparePause;
    return false;
  }
  record_start(trial, slot);
  launch(trial, slot, std::move(*lock), *extra_arguments);
  return true;
}

std::optional<std::vector<std::string>> TrialPool::prepare(const Trial& trial, const Slot& slot) {
  NextStart next{.trial = trial, .slot = slot};
  next.free_slots = options_.slots.size() - running_.size() - 1;
  for (const Waiting& other : waiting_)
    if (other.trial != &trial && other.ready <= Clock::now() + kReadyWindow)
      next.waiting.push_back(other.trial);
  std::optional<std::vector<std::string>> extra_arguments = std::vector<std::string>{};
  notify([&] { extra_arguments = watcher_.prepare(next); });
  return extra_arguments;
}

void TrialPool::wait_for_lock(Waiting& waiting) {
  // The holder of the lock is usually a child of a killed job, and is about to exit.
  waiting.ready = Clock::now() + kLockPause;
  if (!waiting.locked_since) waiting.locked_since = Clock::now();
  if (Clock::now() - *waiting.locked_since > kLockNoticeDelay) {
    notify([&] {
      watcher_.show_message(waiting.trial->id +
                            ": another process is running it; waiting until that process ends");
    });
    waiting.locked_since = Clock::now() + std::chrono::hours(1);
  }
}

void TrialPool::record_start(const Trial& trial, const Slot& slot) {
  watcher_.starting(trial);
  TrialState& state = states_[trial.id];
  const ordered_json record = {{"event", "start"},
                               {"trial", trial.id},
                               {"attempt", state.starts + 1},
                               {"slot", slot.name},
                               {"output_bytes", size_or_zero(output_of(trial))},
                               {"time", unix_seconds()}};
  journal_.append(record);
  state.apply(record);
}

void TrialPool::launch(const Trial& trial, const Slot& slot, FileLock lock,
                       const std::vector<std::string>& extra_arguments) {
  std::vector<std::string> command = {options_.program.string()};
  for (std::string& argument : trial.train_arguments()) command.push_back(std::move(argument));
  command.insert(command.end(), extra_arguments.begin(), extra_arguments.end());
  const int lock_fd = lock.fd();
  try {
    running_.push_back(
        {.trial = &trial,
         .slot = &slot,
         .attempt = states_[trial.id].starts,
         .lock = std::move(lock),
         .process = std::make_unique<TrialProcess>(command, slot, output_of(trial), lock_fd),
         .stopped_early = false});
  } catch (const IoError& error) {
    return record_failed_start(trial, error);
  }
  notify([&] { watcher_.started(running_.back()); });
}

void TrialPool::record_failed_start(const Trial& trial, const IoError& error) {
  notify([&] { watcher_.show_message(fmt::format("{}: {}", trial.id, error.what())); });
  handle_exit(trial, states_[trial.id].starts, {.exit_code = static_cast<int>(ExitCode::io)},
              false);
}

void TrialPool::adopt_result(const Trial& trial, const ordered_json& summary) {
  const TrialState& state = states_[trial.id];
  const double end = written_at(trial.run_folder() / "summary.json");
  record_end(trial, {{"attempt", state.starts},
                     {"status", "done"},
                     {"exit_code", 0},
                     {"seconds", state.open_since > 0 ? std::max(0.0, end - state.open_since) : 0},
                     {"end_unseen", true},
                     {"figures", summary}});
}

void TrialPool::wait_for_events(int fd) const {
  pollfd wait{fd, POLLIN, 0};
  ::poll(&wait, 1, kPollIntervalMs);
}

void TrialPool::handle_signals(const std::vector<int>& signals) {
  for (const int signal : signals) {
    if (signal == SIGCHLD) continue;
    if (interrupted_ && signal == SIGINT) {
      for (const RunningTrial& running : running_) running.process->kill();
    } else if (!interrupted_) {
      interrupted_ = true;
      stop_all();
      notify([&] {
        watcher_.show_message(fmt::format(
            "asked to stop: waiting until {} saved; press Ctrl-C again to kill without saving",
            running_.size() == 1 ? "1 trial has"
                                 : format_count(running_.size(), "trial") + " have"));
      });
    }
  }
}

void TrialPool::stop_all() {
  stopping_ = true;
  for (const RunningTrial& running : running_) running.process->request_stop();
}

void TrialPool::finish_ended() {
  for (auto running = running_.begin(); running != running_.end();) {
    const std::optional<ProcessEnd> end = running->process->poll();
    if (!end) {
      ++running;
      continue;
    }
    handle_exit(*running->trial, running->attempt, *end, running->stopped_early);
    running = running_.erase(running);
  }
}

TrialStatus TrialPool::status_after(const Trial& trial, TrialOutcome outcome, bool failure,
                                    bool stopped_early) const {
  const TrialState& state = states_.at(trial.id);
  // The program was stopped before it could catch our SIGTERM and save a checkpoint.
  if (stopped_early && outcome == TrialOutcome::retry) return TrialStatus::stopped;
  switch (outcome) {
    case TrialOutcome::done:
      return TrialStatus::done;
    case TrialOutcome::diverged:
      return TrialStatus::diverged;
    case TrialOutcome::failed:
      return TrialStatus::failed;
    case TrialOutcome::preempted:
      if (stopped_early) return TrialStatus::stopped;
      return state.starts < kMaxStarts ? TrialStatus::waiting : TrialStatus::failed;
    case TrialOutcome::retry:
      return failure && state.failures >= options_.max_retries ? TrialStatus::failed
                                                               : TrialStatus::waiting;
    case TrialOutcome::fatal:
      break;
  }
  return TrialStatus::waiting;
}

void TrialPool::handle_exit(const Trial& trial, int attempt, const ProcessEnd& end,
                            bool stopped_early) {
  const auto summary = read_summary(trial.run_folder());
  const TrialOutcome outcome = outcome_of(end, summary.has_value());
  // A process that has just started might not catch our SIGTERM yet, and is then killed by it.
  const bool by_signal = end.signal != 0 || end.exit_code > 128;
  const bool failure =
      outcome == TrialOutcome::retry && !stopped_early && !(stopping_ && by_signal);
  const TrialStatus status = status_after(trial, outcome, failure, stopped_early);
  ordered_json record = {{"attempt", attempt},
                         {"status", name_of(status)},
                         {"exit_code", end.exit_code},
                         {"signal", end.signal},
                         {"failure", failure},
                         {"seconds", end.seconds},
                         {"cpu_seconds", end.cpu_seconds}};
  if (status == TrialStatus::done) record["figures"] = *summary;
  record_end(trial, record);
  if (outcome == TrialOutcome::fatal) {
    fatal_ = true;
    stop_all();
  } else if (status == TrialStatus::waiting && !stopping_) {
    requeue(trial, failure);
  }
}

void TrialPool::requeue(const Trial& trial, bool after_failure) {
  const int doublings = std::min(10, states_[trial.id].failures - 1);
  const auto pause = after_failure ? options_.retry_pause * (1 << doublings) : kNoPause;
  waiting_.push_front({&trial, Clock::now() + pause, std::nullopt});
}

void TrialPool::record_end(const Trial& trial, const ordered_json& record) {
  ordered_json full_record = {{"event", "end"}, {"trial", trial.id}};
  full_record.update(record);
  full_record["settings"] = settings_of(trial);
  full_record["time"] = unix_seconds();
  journal_.append(full_record);
  states_[trial.id].apply(full_record);
  notify([&] { watcher_.ended(trial, full_record); });
}

ExitCode TrialPool::result() const {
  if (fatal_) return ExitCode::usage;
  if (interrupted_) return ExitCode::preempted;
  const bool failed = std::ranges::any_of(trials_, [&](const Trial& trial) {
    return states_.at(trial.id).status == TrialStatus::failed;
  });
  return failed ? ExitCode::failed : ExitCode::done;
}

int report_stopped() {
  log_info("stopped. To continue, run the same command again");
  return static_cast<int>(ExitCode::preempted);
}

}  // namespace precast::tools
