#include "tools/bench/side_by_side.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstring>
#include <memory>
#include <stdexcept>

#include "framework/core/error.h"
#include "framework/core/file.h"
#include "framework/process/spawn.h"
#include "tools/cli/command.h"

namespace precast::tools {
namespace {

constexpr int kPollMs = 200;
// The first byte of each message of a process. kReady is sent before the result.
constexpr char kReady = 'r', kDone = 'd', kFailed = 'f';

void write_all(int file, std::string_view text) {
  while (!text.empty()) {
    const auto written = uninterrupted([&] { return ::write(file, text.data(), text.size()); });
    if (written <= 0) return;  // the reader is gone
    text.remove_prefix(static_cast<std::size_t>(written));
  }
}

/// Runs in the forked process: does the work, sends the result, and exits without running the
/// parent's destructors or flushing the parent's output.
[[noreturn]] void run_child_work(int number, const SideBySideWork& work, int tell, int go,
                                 pid_t parent) {
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (::getppid() != parent) ::_exit(1);
  std::string told;
  try {
    told = kDone + work(number, [&] {
             write_all(tell, std::string(1, kReady));
             char end = 0;
             static_cast<void>(uninterrupted([&] { return ::read(go, &end, 1); }));
           });
  } catch (...) {
    const Failure failure = describe_failure(std::current_exception());
    told = std::string(1, kFailed) + static_cast<char>(failure.exit_code) + failure.text;
  }
  write_all(tell, told);
  ::_exit(0);
}

/// A process and the pipe for its result. The destructor kills the process if it is still running.
class Child {
 public:
  Child(int number, const SideBySideWork& work, Pipe& go) {
    const pid_t parent = ::getpid();
    process_ = ::fork();
    if (process_ < 0) throw IoError("cannot start", "a process", errno);
    if (process_ == 0) {
      go.close_writer();
      run_child_work(number, work, pipe_.writer(), go.reader(), parent);
    }
    pipe_.close_writer();
  }
  Child(const Child&) = delete;
  Child& operator=(const Child&) = delete;
  ~Child() {
    if (process_ <= 0) return;
    ::kill(process_, SIGKILL);
    static_cast<void>(uninterrupted([&] { return ::waitpid(process_, nullptr, 0); }));
  }

  /// Reads up to `most` more bytes of its messages, and calls `waiting` while there are none.
  /// @return false at the end.
  bool listen(std::size_t most, const std::function<void()>& waiting) {
    pollfd wanted{.fd = pipe_.reader(), .events = POLLIN, .revents = 0};
    while (uninterrupted([&] { return ::poll(&wanted, 1, kPollMs); }) == 0) waiting();
    std::array<char, 4096> bytes{};
    const auto count = uninterrupted(
        [&] { return ::read(pipe_.reader(), bytes.data(), std::min(most, bytes.size())); });
    if (count > 0) told_.append(bytes.data(), static_cast<std::size_t>(count));
    return count > 0;
  }

  /// Waits for the process to end, and returns its result. @throws the error that it reported.
  std::string result() {
    int status = 0;
    static_cast<void>(uninterrupted([&] { return ::waitpid(process_, &status, 0); }));
    process_ = 0;
    std::string_view told = told_;
    if (told.starts_with(kReady)) told.remove_prefix(1);
    if (told.starts_with(kDone)) return std::string(told.substr(1));
    if (told.size() >= 2 && told.starts_with(kFailed))
      throw Error(std::string(told.substr(2)), static_cast<ExitCode>(told[1]));
    throw Error(WIFSIGNALED(status) ? fmt::format("measured process: expected a result, got signal "
                                                  "{} ({}). There may be too little memory",
                                                  WTERMSIG(status), ::strsignal(WTERMSIG(status)))
                                    : "measured process: expected a result, got none");
  }

 private:
  Pipe pipe_;
  pid_t process_ = 0;
  std::string told_;
};

}  // namespace

std::vector<std::string> run_side_by_side(int processes, const SideBySideWork& work,
                                          const std::function<void()>& waiting) {
  Pipe go;
  std::vector<std::unique_ptr<Child>> children;
  children.reserve(static_cast<std::size_t>(processes));
  for (int number = 0; number < processes; ++number)
    children.push_back(std::make_unique<Child>(number, work, go));
  for (const auto& child : children) child->listen(1, waiting);  // ready, or failed
  go.close_writer();
  std::vector<std::string> told;
  told.reserve(children.size());
  for (const auto& child : children) {
    while (child->listen(SIZE_MAX, waiting)) {
    }
    told.push_back(child->result());
  }
  return told;
}

}  // namespace precast::tools
