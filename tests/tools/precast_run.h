#pragma once

#include <sys/wait.h>

#include <cstdlib>
#include <string>
#include <utility>
#include <vector>

#include "tests/support/paths.h"
#include "tests/support/program.h"

namespace precast::test {

/// The result of one call of `precast`.
struct PrecastRun {
  int code = 0;
  std::string out;
  std::string err;
};

/// A process of `precast`, which the constructor starts.
class PrecastProgram : public Program {
 public:
  explicit PrecastProgram(std::vector<std::string> arguments,
                          std::vector<std::string> environment = {})
      : Program(with_path(std::move(arguments)), std::move(environment)) {}

 private:
  static std::vector<std::string> with_path(std::vector<std::string> arguments) {
    arguments.insert(arguments.begin(), test::bin_dir() + "/precast");
    return arguments;
  }
};

inline PrecastRun precast_run(std::vector<std::string> arguments,
                              std::vector<std::string> environment = {}) {
  PrecastProgram program(std::move(arguments), std::move(environment));
  const int code = program.wait();
  return {code, program.out, program.err};
}

/// Runs `sh -c "PREFIX precast COMMAND"`. @return its exit code, or -1 if a signal ended it.
inline int precast_shell(const std::string& prefix, const std::string& command) {
  const int status = std::system((prefix + " " + test::bin_dir() + "/precast " + command).c_str());
  return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

}  // namespace precast::test
