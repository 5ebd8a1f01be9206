#pragma once

#include <sys/types.h>

#include <functional>
#include <string>
#include <vector>

#include "tests/support/temporary_folder.h"

namespace precast::test {

/// A program as a user starts it. Output goes to files, so that no pipe can fill up.
class Program {
 public:
  /// @param arguments the first one is the program's path.
  /// @param environment `NAME=value` each; they take precedence over this process's own.
  explicit Program(std::vector<std::string> arguments, std::vector<std::string> environment = {});
  Program(const Program&) = delete;
  Program& operator=(const Program&) = delete;

  [[nodiscard]] pid_t id() const { return id_; }
  /// @return its exit code, or 128 + the signal that ended it.
  int wait();
  /// Until wait() is called: false once it has ended.
  [[nodiscard]] bool running() const;
  /// Waits until it has written `text` `times` times. @return false if it never does.
  [[nodiscard]] bool printed(const std::string& text, int times = 1) const;

  /// After wait().
  std::string out;
  std::string err;

 private:
  [[nodiscard]] std::string text(const std::string& name) const;

  TemporaryFolder folder_;
  pid_t id_ = -1;
};

/// For conditions without an event: polls until `condition` holds, for 2 minutes at most.
/// @return whether it does.
[[nodiscard]] bool eventually(const std::function<bool()>& condition);

/// How often `part` occurs in `text`.
[[nodiscard]] int occurrences(const std::string& text, const std::string& part);

}  // namespace precast::test
