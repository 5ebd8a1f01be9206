#include "tools/experiments/trial/trial_process.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sched.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstring>

#include "framework/core/error.h"
#include "framework/process/spawn.h"

namespace precast::tools {
namespace {

std::vector<std::string> environment_of(const Slot& slot) {
  std::vector<std::string> entries = current_environment();
  std::erase_if(entries, [](const std::string& entry) {
    return entry.starts_with("CUDA_VISIBLE_DEVICES=") || entry.starts_with("OMP_NUM_THREADS=");
  });
  // The program derives its number of threads from the cores to which it is bound. If it starts
  // ranks, they share these cores.
  entries.push_back("CUDA_VISIBLE_DEVICES=" + slot.gpu);
  return entries;
}

/// Runs in the new process between fork and exec, and therefore makes only async-signal-safe calls.
[[noreturn]] void exec_program(char* const* arguments, char* const* environment,
                               const cpu_set_t& cores, int output, int lock_fd, pid_t parent) {
  ::setpgid(0, 0);
  // The handlers of the parent would write into its pipe, which the new process has inherited.
  for (const int signal : {SIGCHLD, SIGTERM, SIGINT, SIGHUP, SIGUSR1}) ::signal(signal, SIG_DFL);
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (::getppid() != parent) ::_exit(128 + SIGKILL);  // the parent ended before prctl
  ::sched_setaffinity(0, sizeof(cores), &cores);
  // The program leads its own group and is therefore a background process of the terminal. Without
  // this, SIGTTOU could stop it when it writes.
  sigset_t mask;
  ::sigemptyset(&mask);
  ::sigaddset(&mask, SIGTTOU);
  ::sigprocmask(SIG_SETMASK, &mask, nullptr);
  const int null = ::open("/dev/null", O_RDONLY);
  ::dup2(null, STDIN_FILENO);
  ::dup2(output, STDOUT_FILENO);
  ::dup2(output, STDERR_FILENO);
  if (lock_fd >= 0) ::fcntl(lock_fd, F_SETFD, 0);
  ::execve(arguments[0], arguments, environment);
  const char* reason = ::strerrordesc_np(errno);
  for (const char* text : {"cannot start ", const_cast<const char*>(arguments[0]), ": ",
                           reason != nullptr ? reason : "?", "\n"}) {
    [[maybe_unused]] const ssize_t written = ::write(STDERR_FILENO, text, std::strlen(text));
  }
  ::_exit(127);
}

double seconds_of(const timeval& time) {
  return static_cast<double>(time.tv_sec) + 1e-6 * static_cast<double>(time.tv_usec);
}

}  // namespace

TrialProcess::TrialProcess(const std::vector<std::string>& command, const Slot& slot,
                           const std::filesystem::path& output, int lock_fd) {
  const std::vector<std::string> environment = environment_of(slot);
  const std::vector<char*> argv = null_terminated(command);
  const std::vector<char*> envp = null_terminated(environment);
  cpu_set_t cores;
  CPU_ZERO(&cores);
  for (const int core : slot.cores) CPU_SET(core, &cores);
  const int file = ::open(output.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0666);
  if (file < 0) throw IoError("cannot open", output.string(), errno);
  const pid_t parent = ::getpid();
  // A signal that arrives before exec must not run this program's handlers in the new process.
  sigset_t all;
  sigset_t before;
  ::sigfillset(&all);
  ::pthread_sigmask(SIG_SETMASK, &all, &before);
  start_ = std::chrono::steady_clock::now();
  // posix_spawn, which the launcher of ranks uses, supports neither affinity nor a signal on the
  // death of the parent.
  pid_ = ::fork();
  if (pid_ == 0) exec_program(argv.data(), envp.data(), cores, file, lock_fd, parent);
  const int failure = errno;
  ::pthread_sigmask(SIG_SETMASK, &before, nullptr);
  ::close(file);
  if (pid_ < 0) throw IoError("cannot start", command.at(0), failure);
  ::setpgid(pid_, pid_);  // in both processes, because either may run first
}

TrialProcess::~TrialProcess() {
  if (end_) return;
  kill();
  while (::waitpid(pid_, nullptr, 0) < 0 && errno == EINTR) {
  }
}

void TrialProcess::request_stop() const {
  if (!end_) ::kill(pid_, SIGTERM);
}

void TrialProcess::kill() const {
  if (!end_) ::kill(-pid_, SIGKILL);
}

std::optional<ProcessEnd> TrialProcess::poll() {
  if (end_) return end_;
  siginfo_t info{};
  if (::waitid(P_PID, static_cast<id_t>(pid_), &info, WEXITED | WNOHANG | WNOWAIT) != 0 ||
      info.si_pid == 0) {
    return std::nullopt;
  }
  // Kills children that the process left behind. The process is not reaped yet, so no other process
  // group can have its id.
  ::kill(-pid_, SIGKILL);
  int status = 0;
  rusage usage{};
  while (::wait4(pid_, &status, 0, &usage) < 0 && errno == EINTR) {
  }
  end_ = {.exit_code = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status),
          .signal = WIFSIGNALED(status) ? WTERMSIG(status) : 0,
          .seconds = seconds(),
          .cpu_seconds = seconds_of(usage.ru_utime) + seconds_of(usage.ru_stime)};
  return end_;
}

double TrialProcess::seconds() const {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start_).count();
}

}  // namespace precast::tools
