#pragma once

#include <sys/types.h>

#include <string>
#include <vector>

#include "tests/support/temporary_folder.h"

namespace precast::test {

/// A program as a user starts it. Output goes to files, so that no pipe can fill up.
class Program {
 public:
  /// @param arguments the first one is the program's path.
  /// @param environment `NAME=value` each, before what this process has.
  explicit Program(std::vector<std::string> arguments, std::vector<std::string> environment = {});
  Program(const Program&) = delete;
  Program& operator=(const Program&) = delete;

  [[nodiscard]] pid_t id() const { return id_; }
  /// @return its exit code, or 128 + the signal that ended it.
  int wait();
  /// Waits until it has written `text` `times` times. @return false if that took over 30 s.
  [[nodiscard]] bool printed(const std::string& text, int times = 1) const;

  /// After wait().
  std::string out;
  std::string err;

 private:
  [[nodiscard]] std::string text(const std::string& name) const;

  TemporaryFolder folder_;
  pid_t id_ = -1;
};

/// How often `part` occurs in `text`.
[[nodiscard]] int occurrences(const std::string& text, const std::string& part);

}  // namespace precast::test
