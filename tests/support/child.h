#pragma once

#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <memory>
#include <system_error>
#include <utility>

#include "framework/core/error.h"

namespace precast::test {

/// A child process; killed when the object is destroyed.
class Child {
 public:
  /// @param body returns the exit code. If it throws an Error, the exit code is that of the Error;
  /// for any other exception, it is 99.
  template <typename Body>
  explicit Child(const Body& body) : id_(::fork()) {
    if (id_ < 0) throw std::system_error(errno, std::generic_category(), "fork");
    if (id_ != 0) return;
    int code = 99;
    try {
      code = body();
    } catch (const Error& error) {
      code = static_cast<int>(error.exit_code());
    } catch (...) {
    }
    ::_exit(code);
  }
  Child(Child&& other) noexcept : id_(std::exchange(other.id_, -1)) {}
  Child& operator=(Child&&) = delete;
  ~Child() {
    if (id_ > 0) kill();
  }
  void kill() {
    require(id_ > 0, "the child has not been waited for");
    ::kill(id_, SIGKILL);
    static_cast<void>(wait());
  }
  /// Waits for the end. @return the exit code, or 128 + the signal that ended the child.
  [[nodiscard]] int wait() {
    require(id_ > 0, "the child has not been waited for");
    int status = 0;
    ::waitpid(std::exchange(id_, -1), &status, 0);
    return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
  }

 private:
  pid_t id_;
};

/// Makes this process the parent of orphaned descendants, so that it can wait for them.
class Reaper {
 public:
  Reaper() { ::prctl(PR_SET_CHILD_SUBREAPER, 1); }
  Reaper(const Reaper&) = delete;
  Reaper& operator=(const Reaper&) = delete;
  ~Reaper() { ::prctl(PR_SET_CHILD_SUBREAPER, 0); }
};

/// A value that this process shares with its children.
template <typename Value>
std::shared_ptr<Value> shared_with_children() {
  void* const at =
      ::mmap(nullptr, sizeof(Value), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  EXPECT_NE(at, MAP_FAILED);
  return {new (at) Value, [](Value* value) { ::munmap(value, sizeof(Value)); }};
}

}  // namespace precast::test
