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
  /// Number of restarts of a trial after failures that may be temporary.
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
  /// Set by the watcher.
  bool stopped_early = false;
};

/// A trial that can start now.
struct NextStart {
  const Trial& trial;
  const Slot& slot;
  /// Number of other slots that are free, and the other trials that could start.
  std::size_t free_slots = 0;
  std::vector<const Trial*> waiting = {};
};

/// Receives the events of a TrialPool and decides on early stops. The defaults do nothing.
class PoolWatcher {
 public:
  virtual ~PoolWatcher();
  /// Called before a trial starts. @return further arguments for its process; nothing: the trial
  /// cannot start yet, and this function is called again soon.
  virtual std::optional<std::vector<std::string>> prepare(const NextStart& /*next*/) {
    return std::vector<std::string>{};
  }
  virtual void started(const RunningTrial& /*running*/) {}
  /// @param record the journal record.
  virtual void ended(const Trial& /*trial*/, const nlohmann::ordered_json& /*record*/) {}
  /// Called several times a second.
  virtual void look(const std::list<RunningTrial>& /*running*/, std::size_t /*waiting*/) {}
  /// Whether the trial must save and end.
  virtual bool stops(const Trial& /*trial*/) { return false; }
  /// Human-readable messages.
  virtual void say(const std::string& text);
  /// Called when a slot is free. Returns the id of a stopped trial that should continue after all.
  virtual std::optional<std::string> resumes() { return std::nullopt; }
};

/// Runs trials in slots, in the order given, until each has a result, and records every start and
/// end in a journal: if the pool is killed and restarted, it continues where it stopped, without
/// running a trial twice or losing a result. Each trial leaves `lock` and `output` (what it
/// printed) in its run folder. The lock prevents two pools from running the same trial. If a run
/// finished while no pool was running, its result is taken from its summary.json.
///
/// SIGTERM, SIGINT, SIGHUP and SIGUSR1 make the trials save and end; a second SIGINT kills them.
/// Only one pool may run in a process at a time, and it must be used from one thread.
class TrialPool {
 public:
  /// Keeps references to `journal`, `states` and `watcher`.
  /// @param states the states from the journal; updated during the run.
  TrialPool(PoolOptions options, Journal& journal, std::map<std::string, TrialState>& states,
            PoolWatcher& watcher);

  /// Runs the trials whose status is `waiting`. @return done; failed if one has failed; usage if a
  /// trial failed in a way in which all would fail (the others are stopped); preempted after a
  /// signal.
  /// @throws IoError if the journal cannot be written; running trials first save and end.
  /// Exceptions of a watcher become warnings.
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
  /// checkpoint, and waits for them.
  void save_running(SignalPipe& signals);
  static void tell(const std::function<void()>& watcher);
  void fill_slots();
  void queue_resumed();
  void start_next(const Slot& slot);
  /// @return false if another process holds the trial.
  bool start(Waiting& waiting, const Slot& slot);
  void wait_for_lock(Waiting& waiting);
  void record_start(const Trial& trial, const Slot& slot);
  void launch(const Trial& trial, const Slot& slot, FileLock lock,
              const std::vector<std::string>& more);
  [[nodiscard]] std::optional<std::vector<std::string>> prepare(const Trial& trial,
                                                                const Slot& slot);
  void take_over(const Trial& trial, const nlohmann::ordered_json& summary);
  [[nodiscard]] const Slot* free_slot() const;
  void wait_for_events(int fd) const;
  void handle(const std::vector<int>& signals);
  void stop_all();
  void finish_ended();
  void cannot_start(const Trial& trial, const IoError& error);
  void conclude(const Trial& trial, int attempt, const ProcessEnd& end, bool stopped_early);
  void queue_again(const Trial& trial, bool after_failure);
  [[nodiscard]] TrialStatus status_after(const Trial& trial, Verdict verdict, bool failure,
                                         bool stopped_early) const;
  void record_end(const Trial& trial, nlohmann::ordered_json record);
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

}  // namespace precast::tools
