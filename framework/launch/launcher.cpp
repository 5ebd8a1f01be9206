#include "framework/launch/launcher.h"

#include <fmt/core.h>
#include <poll.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <list>
#include <optional>
#include <string_view>

#include "framework/core/error.h"
#include "framework/launch/watch_launcher.h"
#include "framework/process/child_output.h"
#include "framework/process/signal_pipe.h"
#include "framework/process/spawn.h"

namespace precast {
namespace {

using Clock = std::chrono::steady_clock;

constexpr int kPeerFailed = static_cast<int>(ExitCode::peer_failed);
constexpr int kPreempted = static_cast<int>(ExitCode::preempted);
/// As in shells, the exit code of a killed process is this plus the signal's number.
constexpr int kSignalCode = 128;

struct Child {
  int rank = 0;
  pid_t pid = 0;
  bool running = true;
  /// Whether the launcher killed the child; its exit code then has no meaning.
  bool killed = false;
  std::list<ChildStream> streams;
};

struct Failure {
  int rank = 0;
  int code = 0;
  std::string cause;
};

class Launch {
 public:
  explicit Launch(const LaunchOptions& options);
  Launch(const Launch&) = delete;
  Launch& operator=(const Launch&) = delete;
  /// Ends and reaps all children, even after an exception.
  ~Launch();

  void start_all();
  /// @return the exit code.
  int run();

 private:
  void start(int rank);
  [[nodiscard]] std::vector<std::string> environment(int rank) const;
  [[nodiscard]] bool any_running() const;
  /// Waits for signals, output and the end of the grace period; reads and writes what is ready.
  void wait_for_events();
  void handle(int signal);
  void send(int signal);
  void pause_all();
  void kill_all();
  void reap();
  /// @return the failure, or nothing if the end of the child is not a failure.
  std::optional<Failure> classify_exit(const Child& child, int status);
  void fail(Failure failure);
  void print_first_failure();
  void print_line(std::string_view text) { output_.line(STDERR_FILENO, "launcher: ", text); }
  [[nodiscard]] int exit_code() const;

  const LaunchOptions& options_;
  std::vector<std::string> base_environment_;
  /// The children detect the end of the launcher when the write end of this pipe closes.
  Pipe lifetime_pipe_;
  OutputQueue output_;
  std::list<Child> children_;
  std::optional<SignalPipe> signals_;

  std::optional<Failure> first_failure_;
  bool first_failure_printed_ = false;
  std::optional<Clock::time_point> kill_time_;
  std::vector<int> forwarded_;
  bool preempted_ = false;
};

bool is_assignment_of(std::string_view entry, std::string_view variable) {
  return entry.starts_with(variable) && entry.substr(variable.size()).starts_with('=');
}

Launch::Launch(const LaunchOptions& options) : options_(options) {
  require(!options.command.empty() && options.processes > 0,
          "launch() has a command and at least one process");
  constexpr std::array kLauncherVariables{"PRECAST_RANK",       "PRECAST_WORLD_SIZE",
                                          "PRECAST_LOCAL_RANK", "PRECAST_LOCAL_WORLD_SIZE",
                                          "PRECAST_STORE",      kLauncherPipeVariable};
  base_environment_ = current_environment();
  std::erase_if(base_environment_, [&](const std::string& entry) {
    return std::any_of(kLauncherVariables.begin(), kLauncherVariables.end(),
                       [&](const char* variable) { return is_assignment_of(entry, variable); });
  });
  signals_.emplace(std::vector{SIGCHLD, SIGTERM, SIGINT, SIGUSR1, SIGHUP, SIGTSTP});
}

Launch::~Launch() {
  kill_all();
  for (const Child& child : children_) {
    if (!child.running) continue;
    while (waitpid(child.pid, nullptr, 0) < 0 && errno == EINTR) {
    }
  }
  // Restores the old handlers before flush(), so that Ctrl-C ends the process if a terminal or
  // pager does not accept the output.
  signals_.reset();
  output_.flush();
}

std::vector<std::string> Launch::environment(int rank) const {
  std::vector<std::string> entries = base_environment_;
  const bool ipv6 = options_.store_address.find(':') != std::string::npos;
  const auto add = [&](const char* name, const auto& value) {
    entries.push_back(fmt::format("{}={}", name, value));
  };
  add("PRECAST_RANK", rank);
  add("PRECAST_LOCAL_RANK", rank);
  add("PRECAST_WORLD_SIZE", options_.processes);
  add("PRECAST_LOCAL_WORLD_SIZE", options_.processes);
  add("PRECAST_STORE", fmt::format(fmt::runtime(ipv6 ? "[{}]:{}" : "{}:{}"), options_.store_address,
                                   options_.store_port));
  add(kLauncherPipeVariable, lifetime_pipe_.reader());
  constexpr const char* kThreads = "OMP_NUM_THREADS";
  if (options_.threads_per_process > 0 && std::getenv(kThreads) == nullptr) {
    add(kThreads, options_.threads_per_process);
  }
  return entries;
}

void Launch::start_all() {
  for (int rank = 0; rank < options_.processes; ++rank) start(rank);
}

void Launch::start(int rank) {
  Child child;
  child.rank = rank;
  const std::string prefix = rank == 0 ? "" : fmt::format("[rank {}] ", rank);
  std::vector<InheritedFile> files{{lifetime_pipe_.reader(), lifetime_pipe_.reader()}};
  const auto attach = [&](int child_fd, int parent_fd) {
    ChildStream& stream = child.streams.emplace_back(output_, parent_fd, prefix);
    files.push_back({stream.pipe().writer(), child_fd});
  };
  attach(STDOUT_FILENO, rank == 0 ? STDOUT_FILENO : STDERR_FILENO);
  // If standard error is a terminal, rank zero writes to it directly, because it could not draw its
  // progress line through a pipe.
  if (rank != 0 || isatty(STDERR_FILENO) != 1) attach(STDERR_FILENO, STDERR_FILENO);
  const int failure = spawn(options_.command, environment(rank), files, true, child.pid);
  if (failure != 0) throw IoError("launcher: cannot start", options_.command[0], failure);
  for (ChildStream& stream : child.streams) stream.pipe().close_writer();
  children_.push_back(std::move(child));
}

int Launch::run() {
  while (any_running()) {
    wait_for_events();
    for (const int signal : signals_->take()) handle(signal);
    reap();
    if (kill_time_ && Clock::now() >= *kill_time_) {
      print_first_failure();  // before its consequences
      for (const Child& child : children_) {
        if (!child.running || child.killed) continue;
        print_line(fmt::format("rank {} (pid {}) did not end within {:g} s and is killed",
                               child.rank, child.pid,
                               std::chrono::duration<double>(options_.grace).count()));
      }
      kill_all();
    }
  }
  print_first_failure();
  return exit_code();
}

bool Launch::any_running() const {
  return std::any_of(children_.begin(), children_.end(),
                     [](const Child& child) { return child.running; });
}

void Launch::wait_for_events() {
  int timeout_ms = -1;
  if (kill_time_) {
    using std::chrono::milliseconds;
    const auto left = std::chrono::ceil<milliseconds>(*kill_time_ - Clock::now());
    timeout_ms = static_cast<int>(std::max<milliseconds::rep>(0, left.count()));
  }
  std::vector<pollfd> waits{{signals_->fd(), POLLIN, 0}, {output_.waiting_fd(), POLLOUT, 0}};
  std::vector<ChildStream*> streams;
  for (Child& child : children_) {
    for (ChildStream& stream : child.streams) {
      if (!stream.open() || output_.full()) continue;
      waits.push_back({stream.pipe().reader(), POLLIN, 0});
      streams.push_back(&stream);
    }
  }
  if (poll(waits.data(), waits.size(), timeout_ms) <= 0) return;
  for (std::size_t i = 0; i < streams.size(); ++i) {
    if (waits[2 + i].revents != 0) streams[i]->read_some();
  }
  if (waits[1].revents != 0) output_.write_some();
}

void Launch::handle(int signal) {
  switch (signal) {
    case SIGCHLD:
      return;  // its only purpose is to wake up poll()
    case SIGTSTP:
      return pause_all();
    case SIGINT:
      if (std::find(forwarded_.begin(), forwarded_.end(), SIGINT) != forwarded_.end()) {
        return kill_all();
      }
      break;
    case SIGHUP:
      signal = SIGTERM;  // the terminal was closed: ranks save a checkpoint and stop
      break;
    default:
      break;
  }
  forwarded_.push_back(signal);
  send(signal);
}

void Launch::send(int signal) {
  for (const Child& child : children_) {
    if (child.running) kill(child.pid, signal);
  }
}

void Launch::pause_all() {
  for (const Child& child : children_) {
    if (child.running) kill(-child.pid, SIGSTOP);
  }
  const auto paused = Clock::now();
  raise(SIGSTOP);
  // The time in suspension does not count towards the grace period.
  if (kill_time_) *kill_time_ += Clock::now() - paused;
  for (const Child& child : children_) {
    if (child.running) kill(-child.pid, SIGCONT);
  }
}

void Launch::kill_all() {
  kill_time_.reset();
  for (Child& child : children_) {
    if (!child.running) continue;
    child.killed = true;
    kill(-child.pid, SIGKILL);
  }
}

void Launch::reap() {
  std::vector<Failure> failures;
  for (Child& child : children_) {
    if (!child.running) continue;
    siginfo_t info{};
    const auto id = static_cast<id_t>(child.pid);
    if (waitid(P_PID, id, &info, WEXITED | WNOHANG | WNOWAIT) != 0 || info.si_pid == 0) continue;
    // Kills the processes that the child started and left behind. The child is not reaped yet, so
    // its process id cannot belong to another group.
    kill(-child.pid, SIGKILL);
    int status = 0;
    waitpid(child.pid, &status, 0);
    child.running = false;
    for (ChildStream& stream : child.streams) stream.finish();
    if (std::optional<Failure> failure = classify_exit(child, status)) failures.push_back(*failure);
  }
  // If several ranks have ended since the last call, a rank that failed only because a peer failed
  // must not count as the first failure.
  std::stable_partition(failures.begin(), failures.end(),
                        [](const Failure& failure) { return failure.code != kPeerFailed; });
  for (Failure& failure : failures) fail(std::move(failure));
}

std::optional<Failure> Launch::classify_exit(const Child& child, int status) {
  if (child.killed) return std::nullopt;
  Failure failure{child.rank, 0, fmt::format("rank {} (pid {}) ", child.rank, child.pid)};
  if (WIFSIGNALED(status)) {
    const int signal = WTERMSIG(status);
    failure.code = kSignalCode + signal;
    const char* name = sigabbrev_np(signal);
    failure.cause += fmt::format("was killed by signal {} (SIG{})", signal, name ? name : "?");
    return failure;
  }
  failure.code = WEXITSTATUS(status);
  preempted_ = preempted_ || failure.code == kPreempted;
  if (failure.code == 0 || failure.code == kPreempted) return std::nullopt;
  failure.cause += fmt::format("exited with code {}", failure.code);
  if (failure.code == kPeerFailed) failure.cause += " (another rank failed)";
  return failure;
}

void Launch::fail(Failure failure) {
  const bool is_first = !first_failure_;
  // A rank that failed because a peer failed may end before that peer.
  if (is_first || (first_failure_->code == kPeerFailed && failure.code != kPeerFailed)) {
    first_failure_ = std::move(failure);
    if (first_failure_->code != kPeerFailed) print_first_failure();
  }
  if (!is_first) return;
  kill_time_ = Clock::now() + options_.grace;
  if (options_.on_failure) options_.on_failure(first_failure_->rank, first_failure_->cause);
}

void Launch::print_first_failure() {
  if (!first_failure_ || first_failure_printed_) return;
  first_failure_printed_ = true;
  const auto running = std::count_if(children_.begin(), children_.end(),
                                     [](const Child& child) { return child.running; });
  std::string line = first_failure_->cause;
  if (line.ends_with("(SIGKILL)")) line += ", which the kernel also sends when memory runs out";
  if (running > 0) {
    line += fmt::format("; {} other{} {:g} s to end", running, running == 1 ? " has" : "s have",
                        std::chrono::duration<double>(options_.grace).count());
  }
  print_line(line);
}

int Launch::exit_code() const {
  if (first_failure_) return first_failure_->code;
  const bool killed = std::any_of(children_.begin(), children_.end(),
                                  [](const Child& child) { return child.killed; });
  // If no rank has failed, only a second SIGINT can have killed a child.
  if (killed) return kSignalCode + SIGINT;
  return preempted_ ? kPreempted : static_cast<int>(ExitCode::done);
}

}  // namespace

int launch(const LaunchOptions& options) {
  Launch launch(options);
  launch.start_all();
  return launch.run();
}

}  // namespace precast
