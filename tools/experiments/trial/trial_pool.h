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
#include "framework/process/signal_pipe.h"
#include "tools/experiments/trial/file_lock.h"
#include "tools/experiments/trial/journal.h"
#include "tools/experiments/trial/slot.h"
#include "tools/experiments/trial/trial.h"
#include "tools/experiments/trial/trial_process.h"

namespace precast::tools {

struct PoolOptions {
  /// `precast`, or a program that takes the same arguments.
  std::filesystem::path program;
  std::vector<Slot> slots;
  /// How often a trial is started again after failures that may not repeat themselves.
  int max_retries = 2;
  /// Before the first retry; twice as long before the second one, and so on.
  std::chrono::milliseconds retry_pause{5000};
};

/// A trial that is being trained.
struct RunningTrial {
  const Trial* trial = nullptr;
  const Slot* slot = nullptr;
  int attempt = 1;
  FileLock lock;
  std::unique_ptr<TrialProcess> process;
  /// By the watcher.
  bool stopped_early = false;
};

/// Hears what happens in a TrialPool and decides on early stops. The defaults do nothing.
class PoolWatcher {
 public:
  virtual ~PoolWatcher();
  virtual void started(const RunningTrial& /*running*/) {}
  /// @param record the journal's.
  virtual void ended(const Trial& /*trial*/, const nlohmann::ordered_json& /*record*/) {}
  /// A few times a second.
  virtual void look(const std::list<RunningTrial>& /*running*/, std::size_t /*waiting*/) {}
  /// True: the trial is told to save and end.
  virtual bool stops(const Trial& /*trial*/) { return false; }
  /// Words for people.
  virtual void say(const std::string& text);
  /// A slot is free: the id of a stopped trial that shall go on after all.
  virtual std::optional<std::string> resumes() { return std::nullopt; }
};

/// Runs trials in slots until each has a result, in the order given, with every start and end in a
/// journal: started again after any kill it goes on where it was, runs nothing twice and loses
/// nothing. Each trial leaves `lock` and `output` (what it printed) in its run folder. The lock
/// keeps two pools from the same trial; a run that has finished unseen is taken over from its
/// summary.json.
///
/// SIGTERM, SIGINT, SIGHUP and SIGUSR1 make the trials save and end; a second SIGINT kills them.
/// One pool at a time in a process, and one thread.
class TrialPool {
 public:
  /// Borrows all. @param states what the journal says so far; kept up to date.
  TrialPool(PoolOptions options, Journal& journal, std::map<std::string, TrialState>& states,
            PoolWatcher& watcher);

  /// Runs those of `trials` that wait. @return done; failed if one has failed; usage if a trial
  /// ended in a way that all would (the others are stopped); preempted after a signal.
  /// @throws IoError if the journal cannot be written; trainings save and end first. What a watcher
  /// throws is a warning.
  ExitCode run(std::span<const Trial> trials);

 private:
  using Clock = std::chrono::steady_clock;
  struct Waiting {
    const Trial* trial;
    Clock::time_point ready;
    std::optional<Clock::time_point> locked_since;
  };

  void run_all(SignalPipe& signals);
  /// Asks all trainings to save and end, so that none loses what it has done since its last
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
  void launch(const Trial& trial, const Slot& slot, FileLock lock);
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
