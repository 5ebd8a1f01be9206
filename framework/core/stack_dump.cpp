#include "framework/core/stack_dump.h"

#include <execinfo.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <chrono>
#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>
#include <string_view>
#include <thread>

namespace precast {
namespace {

constexpr std::size_t kMaxFrames = 64;
constexpr auto kResponseTimeout = std::chrono::seconds(1);

std::atomic<int> g_fd = -1;
std::atomic<bool> g_dumped = false;

void write_text(int fd, std::string_view text) {
  while (!text.empty()) {
    const ssize_t written = ::write(fd, text.data(), text.size());
    if (written <= 0) return;
    text.remove_prefix(static_cast<std::size_t>(written));
  }
}

/// Writes the stack of the interrupted thread. The first call of backtrace() loads a library, which
/// is not safe in a signal handler. Therefore, dump_all_stacks() has already called it once.
void on_dump_signal(int /*signal*/) {
  std::array<void*, kMaxFrames> frames{};
  const int count = ::backtrace(frames.data(), static_cast<int>(frames.size()));
  ::backtrace_symbols_fd(frames.data(), count, g_fd);
  g_dumped = true;
}

std::string thread_name(const std::filesystem::path& task) {
  std::string name;
  std::getline(std::ifstream(task / "comm"), name);
  return name;
}

void dump_thread(int fd, int signal, pid_t thread, const std::string& name) {
  write_text(fd, "thread " + std::to_string(thread) + " (" + name + ")\n");
  g_dumped = false;
  if (::syscall(SYS_tgkill, ::getpid(), thread, signal) != 0) return;
  const auto deadline = std::chrono::steady_clock::now() + kResponseTimeout;
  while (!g_dumped && std::chrono::steady_clock::now() < deadline)
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  if (!g_dumped) write_text(fd, "  does not respond: it is probably blocked in the kernel\n");
}

}  // namespace

void dump_all_stacks(int fd) {
  std::array<void*, 1> frame{};
  static_cast<void>(::backtrace(frame.data(), 1));
  g_fd = fd;
  const int signal = SIGRTMIN + 5;
  struct sigaction action {};
  action.sa_handler = on_dump_signal;
  action.sa_flags = SA_RESTART;
  if (::sigaction(signal, &action, nullptr) != 0) return;
  std::error_code failure;
  for (const auto& entry : std::filesystem::directory_iterator("/proc/self/task", failure)) {
    const auto thread = static_cast<pid_t>(std::atol(entry.path().filename().c_str()));
    dump_thread(fd, signal, thread, thread_name(entry.path()));
  }
}

}  // namespace precast
