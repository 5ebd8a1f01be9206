#include "framework/process/child_process.h"

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
#include <filesystem>
#include <fstream>
#include <iterator>
#include <sstream>
#include <string_view>
#include <system_error>
#include <thread>

#include "framework/core/cancel.h"
#include "framework/process/spawn.h"

namespace precast {
namespace {

namespace fs = std::filesystem;
using Clock = std::chrono::steady_clock;

/// The entries of a folder in /proc; empty if the process has ended.
std::vector<fs::path> entries_of(const fs::path& folder) {
  std::vector<fs::path> entries;
  std::error_code failure;
  for (fs::directory_iterator entry(folder, failure), end; !failure && entry != end;
       entry.increment(failure)) {
    entries.push_back(entry->path());
  }
  return entries;
}

/// The state and the parent of a process or thread; zeros if there is no such process.
struct ProcessStat {
  char state = 0;
  pid_t parent = 0;
};

/// Reads `process`/stat: "ID (NAME) STATE PARENT ...".
ProcessStat stat_of(const fs::path& process) {
  std::ifstream file(process / "stat");
  const std::string text{std::istreambuf_iterator<char>(file), {}};
  // The name may contain spaces and parentheses.
  std::istringstream fields(text.substr(text.rfind(')') + 1));
  ProcessStat stat;
  fields >> stat.state >> stat.parent;
  return stat;
}

/// Suspends a process and waits until all its threads are stopped, at most 0.1 s. The wait is
/// needed because a thread may still be inside fork() when kill() returns.
void suspend(pid_t process) {
  constexpr int kMaxWaits = 100;
  kill(process, SIGSTOP);
  const std::vector<fs::path> threads = entries_of(fmt::format("/proc/{}/task", process));
  const auto runs = [](const fs::path& thread) {
    return std::string_view("RSD").find(stat_of(thread).state) != std::string_view::npos;
  };
  for (int i = 0; i < kMaxWaits && std::ranges::any_of(threads, runs); ++i)
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
}

std::vector<pid_t> children_of(pid_t process) {
  std::vector<pid_t> all;
  bool listed = false;
  for (const fs::path& thread : entries_of(fmt::format("/proc/{}/task", process))) {
    std::ifstream children(thread / "children");
    listed = listed || children.is_open();
    for (pid_t child = 0; children >> child;) all.push_back(child);
  }
  if (listed) return all;
  // The kernel was built without CONFIG_PROC_CHILDREN.
  for (const fs::path& entry : entries_of("/proc")) {
    const int id = std::atoi(entry.filename().c_str());
    if (id > 0 && stat_of(entry).parent == process) all.push_back(id);
  }
  return all;
}

/// Kills a process after its descendants. A process group cannot be used for this: the terminal's
/// signals (Ctrl-C) would not reach a child in its own group, and a descendant may have its own
/// group, as the ranks of a launcher do.
void kill_tree(pid_t process) {
  // A suspended process starts no more processes and does not reap its children, so that their ids
  // cannot pass to other processes.
  suspend(process);
  for (const pid_t child : children_of(process)) kill_tree(child);
  kill(process, SIGKILL);
}

/// Reads both pipes until the child and its descendants have closed them, and keeps at most
/// `max_bytes` of each. @return false if `deadline` passes first, or `*stop` becomes true.
bool collect(const Pipe& output, const Pipe& errors, Clock::time_point deadline,
             std::size_t max_bytes, const std::atomic<bool>* stop, ChildResult& result) {
  const long max_wait_ms = stop == nullptr ? 1000 : 100;
  std::array<pollfd, 2> waits{pollfd{output.reader(), POLLIN, 0},
                              pollfd{errors.reader(), POLLIN, 0}};
  const std::array<std::string*, 2> texts{&result.output, &result.errors};
  std::array<char, 4096> buffer{};
  while (waits[0].fd >= 0 || waits[1].fd >= 0) {
    const auto left =
        std::chrono::duration_cast<std::chrono::milliseconds>(deadline - Clock::now());
    if (left.count() <= 0 || is_set(stop)) return false;
    const auto wait_ms = static_cast<int>(std::min<long>(left.count(), max_wait_ms));
    if (poll(waits.data(), waits.size(), wait_ms) < 0) continue;
    for (std::size_t i = 0; i < waits.size(); ++i) {
      if (waits[i].fd < 0 || waits[i].revents == 0) continue;
      const ssize_t size = read(waits[i].fd, buffer.data(), buffer.size());
      if (size < 0 && errno == EINTR) continue;
      if (size <= 0) {
        waits[i].fd = -1;  // poll() ignores negative descriptors
      } else {
        const std::size_t left_bytes = max_bytes - texts[i]->size();
        texts[i]->append(buffer.data(), std::min(static_cast<std::size_t>(size), left_bytes));
      }
    }
  }
  return true;
}

/// Waits until the child has ended, which may be long after it closed its output. Does not reap it.
/// @return like collect().
bool wait_for_end(pid_t child, Clock::time_point deadline, const std::atomic<bool>* stop) {
  constexpr std::chrono::milliseconds kMaxPause{50};
  std::chrono::milliseconds pause{1};
  siginfo_t ended{};
  const auto id = static_cast<id_t>(child);
  while (waitid(P_PID, id, &ended, WEXITED | WNOHANG | WNOWAIT) == 0 && ended.si_pid == 0) {
    if (Clock::now() >= deadline || is_set(stop)) return false;
    std::this_thread::sleep_for(pause);
    pause = std::min(2 * pause, kMaxPause);
  }
  return true;
}

}  // namespace

ChildResult run_child(const std::vector<std::string>& arguments, std::chrono::milliseconds timeout,
                      std::size_t max_bytes, const std::atomic<bool>* stop) {
  ChildResult result;
  Pipe output;
  Pipe errors;
  pid_t child = 0;
  const std::array<InheritedFile, 2> files{InheritedFile{output.writer(), STDOUT_FILENO},
                                           InheritedFile{errors.writer(), STDERR_FILENO}};
  const int failure = spawn(arguments, current_environment(), files, false, child);
  if (failure != 0) {
    result.exit_code = 127;
    result.errors = arguments[0] + ": " + std::strerror(failure);
    return result;
  }
  output.close_writer();
  errors.close_writer();
  const auto deadline = Clock::now() + timeout;
  if (!collect(output, errors, deadline, max_bytes, stop, result) ||
      !wait_for_end(child, deadline, stop)) {
    result.timed_out = stop == nullptr || !*stop;
    kill_tree(child);
  }
  int status = 0;
  while (waitpid(child, &status, 0) < 0 && errno == EINTR) {
  }
  result.exit_code = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
  return result;
}

}  // namespace precast
