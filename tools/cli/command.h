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
  /// @param args what follows the command's name. @return the process's exit code. May throw.
  int (*run)(const std::vector<std::string>& args);
};

/// What a user is told of an exception, and the process's exit code.
struct Failure {
  /// Empty: nothing is left to be told.
  std::string text;
  int exit_code = 0;
};
[[nodiscard]] Failure describe_failure(const std::exception_ptr& exception);

/// What a main() does: finds the command, runs it, turns exceptions into one clear message on
/// standard error and the right exit code (ExitCode). `--help`, `--version` and an unknown command
/// are answered here.
int run_command(std::string_view program, std::span<const Command> commands, int argc, char** argv);

}  // namespace precast::tools
