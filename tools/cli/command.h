#pragma once

#include <exception>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace precast::tools {

/// One command of a program: `precast write ...`, `precast bench loader ...`.
struct Command {
  /// One word, or two if it belongs to a group: `bench loader`.
  std::string_view name;
  /// Its line in `precast --help`.
  std::string_view summary;
  /// @param args the arguments after the command's name. @return the process's exit code. May
  /// throw.
  int (*run)(const std::vector<std::string>& args);
  /// Whether another program runs and describes the command.
  bool is_external = false;
  /// Whether users call it only through another command. Help leaves it out.
  bool is_internal = false;
};

/// The message that a user sees for an exception, and the process's exit code.
struct Failure {
  /// The message; empty if nothing is to be printed.
  std::string text;
  int exit_code = 0;
};
[[nodiscard]] Failure describe_failure(const std::exception_ptr& exception);

/// The body of main(): finds the command, runs it, and turns exceptions into one clear message on
/// standard error and the right exit code (ExitCode). It also handles unknown commands and the
/// following arguments:
/// - `--version` and `-V`;
/// - `help`, `--help`: all commands that are not internal; `help COMMAND`; `help --json`: a line of
///   JSON with the names and summaries of the commands, then one line for each command that this
///   program runs itself; `help --json COMMAND`: only the line of this command. `help` with another
///   option runs the command `help`, if there is one;
/// - no command, or the name of a group alone: the list of commands, with exit code 2.
/// If standard output is a pipe that its reader has closed, SIGPIPE ends the process without a
/// message.
int run_command(std::string_view program, std::span<const Command> commands, int argc, char** argv);

}  // namespace precast::tools
