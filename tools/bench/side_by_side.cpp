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
    const auto written = retry_on_eintr([&] { return ::write(file, text.data(), text.size()); });
    if (written <= 0) return;  // the reader has ended
    text.remove_prefix(static_cast<std::size_t>(written));
  }
}

/// Runs in the forked process: does the work, sends the result, and exits without running the
/// parent's destructors or flushing the parent's output.
[[noreturn]] void run_child_work(int number, const SideBySideWork& work, int output_fd,
                                 int start_pipe, pid_t parent) {
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (::getppid() != parent) ::_exit(1);
  std::string output;
  try {
    output = kDone + work(number, [&] {
               write_all(output_fd, std::string(1, kReady));
               char end = 0;
               static_cast<void>(retry_on_eintr([&] { return ::read(start_pipe, &end, 1); }));
             });
  } catch (...) {
    const Failure failure = describe_failure(std::current_exception());
    output = std::string(1, kFailed) + static_cast<char>(failure.exit_code) + failure.text;
  }
  write_all(output_fd, output);
  ::_exit(0);
}

/// A process and the pipe for its result. The destructor kills the process if it is still running.
class Child {
 public:
  Child(int number, const SideBySideWork& work, Pipe& start_pipe) {
    const pid_t parent = ::getpid();
    process_ = ::fork();
    if (process_ < 0) throw IoError("cannot start", "a process", errno);
    if (process_ == 0) {
      start_pipe.close_writer();
      run_child_work(number, work, pipe_.writer(), start_pipe.reader(), parent);
    }
    pipe_.close_writer();
  }
  Child(const Child&) = delete;
  Child& operator=(const Child&) = delete;
  ~Child() {
    if (process_ <= 0) return;
    ::kill(process_, SIGKILL);
    static_cast<void>(retry_on_eintr([&] { return ::waitpid(process_, nullptr, 0); }));
  }

  /// Reads up to `max_bytes` more bytes from the process, and calls `on_wait` while it waits for
  /// them. @return false at the end of the output.
  bool receive(std::size_t max_bytes, const std::function<void()>& on_wait) {
    pollfd poll_fd{.fd = pipe_.reader(), .events = POLLIN, .revents = 0};
    while (retry_on_eintr([&] { return ::poll(&poll_fd, 1, kPollMs); }) == 0) on_wait();
    std::array<char, 4096> bytes{};
    const auto count = retry_on_eintr(
        [&] { return ::read(pipe_.reader(), bytes.data(), std::min(max_bytes, bytes.size())); });
    if (count > 0) output_.append(bytes.data(), static_cast<std::size_t>(count));
    return count > 0;
  }

  /// Waits for the process to end, and returns its result. @throws the error that the process
  /// reported.
  std::string result() {
    int status = 0;
    static_cast<void>(retry_on_eintr([&] { return ::waitpid(process_, &status, 0); }));
    process_ = 0;
    std::string_view output = output_;
    if (output.starts_with(kReady)) output.remove_prefix(1);
    if (output.starts_with(kDone)) return std::string(output.substr(1));
    if (output.size() >= 2 && output.starts_with(kFailed))
      throw Error(std::string(output.substr(2)), static_cast<ExitCode>(output[1]));
    if (WIFEXITED(status) && WEXITSTATUS(status) != 0) {
      // The process has printed the reason, such as a bus error after the dataset was truncated.
      throw Error(
          fmt::format("measured process: expected a result, got exit code {}", WEXITSTATUS(status)),
          static_cast<ExitCode>(WEXITSTATUS(status)));
    }
    throw Error(WIFSIGNALED(status) ? fmt::format("measured process: expected a result, got signal "
                                                  "{} ({}). There may be too little memory",
                                                  WTERMSIG(status), ::strsignal(WTERMSIG(status)))
                                    : "measured process: expected a result, got none");
  }

 private:
  Pipe pipe_;
  pid_t process_ = 0;
  std::string output_;
};

}  // namespace

std::vector<std::string> run_side_by_side(int processes, const SideBySideWork& work,
                                          const std::function<void()>& on_wait) {
  Pipe start_pipe;
  std::vector<std::unique_ptr<Child>> children;
  children.reserve(static_cast<std::size_t>(processes));
  for (int number = 0; number < processes; ++number)
    children.push_back(std::make_unique<Child>(number, work, start_pipe));
  for (const auto& child : children) child->receive(1, on_wait);  // ready, or failed
  start_pipe.close_writer();
  std::vector<std::string> output;
  output.reserve(children.size());
  for (const auto& child : children) {
    while (child->receive(SIZE_MAX, on_wait)) {
    }
    output.push_back(child->result());
  }
  return output;
}

}  // namespace precast::tools
