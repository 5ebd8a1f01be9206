#pragma once

#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <string>
#include <string_view>
#include <thread>

namespace precast::test {

/// Whether the thread with this folder in /proc/self/task is waiting for something. A thread that
/// has ended counts as waiting.
inline bool sleeps(const std::filesystem::path& thread) {
  std::string status;
  std::getline(std::ifstream(thread / "stat"), status);
  const std::size_t name_end = status.rfind(')');
  return name_end == status.npos ||
         std::string_view("SZX").find(status.at(name_end + 2)) != std::string_view::npos;
}

/// Waits until all other threads of this process wait for something, such as room in a queue, and
/// cannot make progress without this thread. The other threads must not use timed sleeps.
inline void wait_until_other_threads_sleep() {
  const auto others_sleep = [] {
    const std::filesystem::directory_iterator threads("/proc/self/task");
    return std::ranges::all_of(threads, [](const auto& thread) {
      return thread.path().filename() == std::to_string(::gettid()) || sleeps(thread.path());
    });
  };
  while (!others_sleep()) std::this_thread::yield();
}

}  // namespace precast::test
