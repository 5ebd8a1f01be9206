#pragma once

#include <sys/types.h>

#include <functional>
#include <string>
#include <vector>

#include "tests/support/temporary_folder.h"

namespace precast::test {

/// A program, started as a user would start it. Output goes to files, so that no pipe can fill up.
class Program {
 public:
  /// @param arguments the first one is the program's path.
  /// @param environment entries `NAME=value`, which take precedence over the environment of this
  /// process.
  explicit Program(std::vector<std::string> arguments, std::vector<std::string> environment = {});
  Program(const Program&) = delete;
  Program& operator=(const Program&) = delete;

  [[nodiscard]] pid_t id() const { return id_; }
  /// Waits for the end. @return the exit code, or 128 + the signal that ended the program.
  int wait();
  /// Whether the program is still running. Call it before wait().
  [[nodiscard]] bool running() const;
  /// Waits until the program has written `text` `times` times. @return false if the program ends,
  /// or 2 minutes pass, before that.
  [[nodiscard]] bool printed(const std::string& text, int times = 1) const;

  /// What the program has written to standard output so far.
  [[nodiscard]] std::string written() const { return text("out"); }

  /// Set by wait().
  std::string out;
  std::string err;

 private:
  [[nodiscard]] std::string text(const std::string& name) const;

  TemporaryFolder folder_;
  pid_t id_ = -1;
};

/// For conditions without an event: polls until `condition` is true, for at most 2 minutes. @return
/// whether it became true.
[[nodiscard]] bool eventually(const std::function<bool()>& condition);

/// How often `part` occurs in `text`.
[[nodiscard]] int occurrences(const std::string& text, const std::string& part);

}  // namespace precast::test
