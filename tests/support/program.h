#pragma once

#include <sys/types.h>

#include <string>
#include <vector>

#include "tests/support/temporary_folder.h"

namespace precast::test {

/// A program as a user starts it. Output goes to files, so that no pipe can fill up.
class Program {
 public:
  /// @param environment `NAME=value`, in front of the test's own.
  /// @throws std::runtime_error if it cannot be started
  Program(const std::string& executable, std::vector<std::string> arguments,
          std::vector<std::string> environment = {});

  [[nodiscard]] pid_t id() const { return id_; }
  /// @return its exit code, or 128 + the signal that ended it.
  int wait();
  /// What it has printed so far; after wait(), all.
  [[nodiscard]] std::string printed() const { return text("out"); }

  /// After wait().
  std::string out;
  std::string err;

 private:
  [[nodiscard]] std::string text(const std::string& name) const;

  TemporaryFolder folder_;
  pid_t id_ = -1;
};

}  // namespace precast::test
