#pragma once

#include <sys/resource.h>
#include <unistd.h>

#include <cstddef>
#include <fstream>
#include <functional>
#include <string>

#include "framework/core/error.h"
#include "tests/support/child.h"

namespace precast::test {

/// Whether the address space can be limited. The sanitizers reserve more than the limit below
/// allows.
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
inline constexpr bool kAddressesCanBeLimited = false;
#else
inline constexpr bool kAddressesCanBeLimited = true;
#endif

/// More threads than the process below can start: each stack takes 8 MiB of address space.
inline constexpr int kTooManyThreads = 2000;

/// Runs `body` in a process with address space for only a few dozen more threads. Returns the
/// message of the DeviceError that `body` throws; "another error: " and the message of any other
/// exception; "finished" if it throws none; "killed" if 30 s pass or terminate() is called. The
/// caller must have no other threads.
inline std::string device_error_of_few_threads(const std::function<void()>& body) {
  int pipe_ends[2] = {};
  if (::pipe(pipe_ends) != 0) return "no pipe";
  Child child([&] {
    ::alarm(30);
    std::size_t pages = 0;
    std::ifstream("/proc/self/statm") >> pages;
    constexpr std::size_t kSpareBytes = std::size_t{512} << 20;
    const rlim_t limit = pages * static_cast<std::size_t>(::sysconf(_SC_PAGESIZE)) + kSpareBytes;
    const rlimit both{limit, limit};
    ::setrlimit(RLIMIT_AS, &both);
    std::string message = "finished";
    try {
      body();
    } catch (const DeviceError& error) {
      message = error.what();
    } catch (const std::exception& error) {
      message = std::string("another error: ") + error.what();
    }
    return ::write(pipe_ends[1], message.data(), message.size()) < 0 ? 1 : 0;
  });
  ::close(pipe_ends[1]);
  char text[1000];
  const auto count = ::read(pipe_ends[0], text, sizeof(text));
  ::close(pipe_ends[0]);
  if (child.wait() > 128) return "killed";
  return count < 0 ? "no answer" : std::string(text, static_cast<std::size_t>(count));
}

}  // namespace precast::test
