#pragma once

#include <chrono>
#include <filesystem>
#include <functional>
#include <list>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "framework/core/error.h"
#include "framework/core/file_lock.h"
#include "framework/process/signal_pipe.h"
#include "tools/experiments/trial/journal.h"
#include "tools/experiments/trial/slot.h"
#include "tools/experiments/trial/trial.h"
#include "tools/experiments/trial/trial_process.h"

namespace precast::tools {

struct PoolOptions {
  /// `precast`, or a program that accepts the same arguments.
  std::filesystem::path program;
  std::vector<Slot> slots;
  /// The maximum number of times that a trial is restarted after failures that may be temporary.
  int max_retries = 2;
  /// Delay before the first retry; it doubles with each retry.
  std::chrono::milliseconds retry_pause{5000};
};

/// A trial that is running.
struct RunningTrial {
  const Trial* trial = nullptr;
  const Slot* slot = nullptr;
  int attempt = 1;
  FileLock lock;
  std::unique_ptr<TrialProcess> process;
  /// Whether it was asked to end because PoolWatcher::should_stop() returned true.
  bool stopped_early = false;
};

/// A trial that can start now.
struct NextStart {
  const Trial& trial;
  const Slot& slot;
  /// Number of other free slots, and the other trials that can start now or within a second.
  std::size_t free_slots = 0;
  std::vector<const Trial*> waiting = {};
};

/// Receives the events of a TrialPool, and decides when trials start and whether they are stopped
/// early. By default, trials start immediately and are never stopped early, and messages are
/// logged.
class PoolWatcher {
 public:
  virtual ~PoolWatcher();
  /// Called before a trial starts. @return further arguments for its process, or nothing if the
  /// trial cannot start yet; this function is then called again soon.
  virtual std::optional<std::vector<std::string>> prepare(const NextStart& /*next*/) {
    return std::vector<std::string>{};
  }
  /// Called before the start of a trial is recorded. If it throws, the trial is not started, and
  /// the pool ends.
  virtual void starting(const Trial& /*trial*/) {}
  virtual void started(const RunningTrial& /*running*/) {}
  /// @param record the record of the end in the journal.
  virtual void ended(const Trial& /*trial*/, const nlohmann::ordered_json& /*record*/) {}
  /// Called several times a second.
  virtual void update(const std::list<RunningTrial>& /*running*/, std::size_t /*waiting*/) {}
  /// Whether a running trial has to save a checkpoint and end.
  virtual bool should_stop(const Trial& /*trial*/) { return false; }
  /// Shows a message to the user.
  virtual void show_message(const std::string& text);
  /// Called when a slot is free. @return the id of a stopped trial that should continue; nothing if
  /// there is none.
  virtual std::optional<std::string> trial_to_resume() { return std::nullopt; }
};

/// Runs trials in slots, in the given order, until no trial has the status `waiting`. It records
/// every start and end in a journal. If the pool is killed and restarted, it therefore continues
/// where it stopped, without running a trial twice or losing a result. It adds two files to the run
/// folder of each trial: `output`, with everything that the trial prints, and `lock`, which
/// prevents two pools from running the same trial. If a run finished while no pool was running, its
/// result is taken from its summary.json.
///
/// SIGTERM, SIGINT, SIGHUP (unless it is ignored, as under nohup) and SIGUSR1 make the trials save
/// and end; a second SIGINT kills them. Only one pool may run in a process at a time, and it must
/// be used from one thread.
class TrialPool {
 public:
  /// Keeps references to `journal`, `states` and `watcher`.
  /// @param states the states from the journal; updated during the run.
  TrialPool(PoolOptions options, Journal& journal, std::map<std::string, TrialState>& states,
            PoolWatcher& watcher);

  /// Runs the trials whose status is `waiting`. @return done; failed if a trial has failed; usage
  /// if a trial failed in a way in which all trials would fail (running trials are then stopped,
  /// and no further trial starts); preempted after a signal. @throws IoError if the journal cannot
  /// be written, and the exceptions of the watcher's starting(), should_stop() and
  /// trial_to_resume(); in both cases, running trials first save and end. Other exceptions of the
  /// watcher become warnings.
  ExitCode run(std::span<const Trial> trials);

 private:
  using Clock = std::chrono::steady_clock;
  struct Waiting {
    const Trial* trial;
    Clock::time_point ready;
    std::optional<Clock::time_point> locked_since;
  };

  void run_all(SignalPipe& signals);
  /// Asks all running trials to save and end, so that none loses its progress since its last
  /// checkpoint, and waits for them for up to two minutes.
  void save_running(SignalPipe& signals);
  static void notify(const std::function<void()>& watcher);
  void fill_slots();
  void queue_resumed();
  void start_next(const Slot& slot);
  /// @return false if the trial has to keep waiting, because another process holds its lock or the
  /// watcher delays its start.
  bool start(Waiting& waiting, const Slot& slot);
  void wait_for_lock(Waiting& waiting);
  void record_start(const Trial& trial, const Slot& slot);
  void launch(const Trial& trial, const Slot& slot, FileLock lock,
              const std::vector<std::string>& extra_arguments);
  [[nodiscard]] std::optional<std::vector<std::string>> prepare(const Trial& trial,
                                                                const Slot& slot);
  void adopt_result(const Trial& trial, const nlohmann::ordered_json& summary);
  [[nodiscard]] const Slot* free_slot() const;
  void wait_for_events(int fd) const;
  void handle_signals(const std::vector<int>& signals);
  void stop_all();
  void finish_ended();
  void record_failed_start(const Trial& trial, const IoError& error);
  void handle_exit(const Trial& trial, int attempt, const ProcessEnd& end, bool stopped_early);
  void requeue(const Trial& trial, bool after_failure);
  [[nodiscard]] TrialStatus status_after(const Trial& trial, TrialOutcome outcome, bool failure,
                                         bool stopped_early) const;
  void record_end(const Trial& trial, const nlohmann::ordered_json& record);
  [[nodiscard]] ExitCode result() const;

  PoolOptions options_;
  Journal& journal_;
  std::map<std::string, TrialState>& states_;
  PoolWatcher& watcher_;
  std::span<const Trial> trials_;
  std::list<Waiting> waiting_;
  std::list<RunningTrial> running_;
  bool stopping_ = false;
  bool interrupted_ = false;
  bool fatal_ = false;
};

/// Prints how to continue a job (a grid, a table) that a signal has stopped. @return its exit code.
[[nodiscard]] int report_stopped();

}  // namespace precast::tools
