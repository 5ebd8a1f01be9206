#include "tools/cli/command.h"

#include <fmt/core.h>

#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstring>
#include <exception>
#include <filesystem>
#include <new>

#include "framework/core/error.h"
#include "framework/core/log.h"
#include "framework/core/suggest.h"
#include "tools/cli/version.h"

namespace precast::tools {
namespace {

int code(ExitCode exit_code) {
  return static_cast<int>(exit_code);
}

void print_help(std::string_view program, std::span<const Command> commands) {
  fmt::print("usage: {} COMMAND [ARGUMENTS]     ({} COMMAND --help for one command)\n\n", program,
             program);
  for (const Command& command : commands) {
    fmt::print("  {:<10} {}\n", command.name, command.summary);
  }
}

int run_caught(const Command& command, const std::vector<std::string>& args) {
  try {
    return command.run(args);
  } catch (...) {
    const Failure failure = describe_failure(std::current_exception());
    if (!failure.text.empty()) log_line("error: " + failure.text);
    return failure.exit_code;
  }
}

/// A failing write then returns an error, which names its file; the signal would kill the process
/// without a message.
void ignore_write_signals() {
  std::signal(SIGPIPE, SIG_IGN);
  std::signal(SIGXFSZ, SIG_IGN);
}

/// Flushes output that may still be buffered, and checks whether any was lost earlier.
/// @return the exit code: `result` if all output was written, or if it already signals a failure.
int finish_output(int result) {
  errno = 0;
  const bool lost = std::fflush(stdout) != 0 || std::ferror(stdout) != 0;
  if (!lost) return result;
  log_info("error: cannot write to standard output{}{}", errno == 0 ? "" : ": ",
           errno == 0 ? "" : std::strerror(errno));
  return result == code(ExitCode::done) ? code(ExitCode::io) : result;
}

int dispatch(std::string_view program, std::span<const Command> commands,
             const std::vector<std::string>& args) {
  if (args.empty() || args[0] == "--help" || args[0] == "-h" || args[0] == "help") {
    print_help(program, commands);
    return code(args.empty() ? ExitCode::usage : ExitCode::done);
  }
  if (args[0] == "--version") {
    fmt::print("precast {}\n", kVersion);
    return code(ExitCode::done);
  }
  std::vector<std::string> names;
  for (const Command& command : commands) {
    if (command.name == args[0]) return run_caught(command, {args.begin() + 1, args.end()});
    names.emplace_back(command.name);
  }
  log_info("error: unknown command '{}'. {}", args[0], suggest(args[0], names));
  return code(ExitCode::usage);
}

}  // namespace

Failure describe_failure(const std::exception_ptr& exception) {
  try {
    std::rethrow_exception(exception);
  } catch (const Error& error) {
    return {error.what(), code(error.exit_code())};
  } catch (const std::bad_alloc&) {
    return {"out of memory", code(ExitCode::out_of_memory)};
  } catch (const std::filesystem::filesystem_error& error) {
    const std::string place = error.path1().empty() ? error.what() : error.path1().string();
    return {place + ": " + error.code().message(), code(ExitCode::io)};
  } catch (const std::exception& error) {
    // A full disk behind standard output ends here: finish_output() reports it.
    if (std::ferror(stdout) != 0) return {"", code(ExitCode::io)};
    return {error.what(), code(ExitCode::failed)};
  } catch (...) {
    return {"something was thrown that is no std::exception", code(ExitCode::failed)};
  }
}

int run_command(std::string_view program, std::span<const Command> commands, int argc,
                char** argv) {
  open_closed_streams();
  ignore_write_signals();
  return finish_output(dispatch(program, commands, {argv + 1, argv + argc}));
}

}  // namespace precast::tools
