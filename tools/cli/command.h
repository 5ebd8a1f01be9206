#pragma once

#include <exception>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace precast::tools {

/// One word of the command line: `precast write ...`.
struct Command {
  std::string_view name;
  /// Its line in `precast --help`.
  std::string_view summary;
  /// @param args the arguments after the command's name. @return the process's exit code. May
  /// throw.
  int (*run)(const std::vector<std::string>& args);
};

/// The message that a user gets for an exception, and the process's exit code.
struct Failure {
  /// Empty: there is nothing left to print.
  std::string text;
  int exit_code = 0;
};
[[nodiscard]] Failure describe_failure(const std::exception_ptr& exception);

/// The body of main(): finds the command, runs it, and turns exceptions into one clear message on
/// standard error and the right exit code (ExitCode). Handles `--help`, `--version` and unknown
/// commands itself.
int run_command(std::string_view program, std::span<const Command> commands, int argc, char** argv);

}  // namespace precast::tools
