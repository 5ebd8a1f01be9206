#include "tools/cli/command.h"

#include <fmt/format.h>
#include <poll.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstring>
#include <exception>
#include <filesystem>
#include <new>
#include <nlohmann/json.hpp>
#include <utility>

#include "framework/core/error.h"
#include "framework/core/log.h"
#include "framework/core/suggest.h"
#include "framework/process/bus_error.h"
#include "tools/cli/help_text.h"
#include "tools/cli/version.h"

namespace precast::tools {
namespace {

int code(ExitCode exit_code) {
  return static_cast<int>(exit_code);
}

bool is_in_group(const Command& command, std::string_view group) {
  return command.name.size() > group.size() && command.name.starts_with(group) &&
         command.name[group.size()] == ' ';
}

/// Prints the commands and their summaries.
/// @param group only the commands of this group; empty: all.
void print_list(std::string_view program, std::span<const Command> commands,
                std::string_view group) {
  const std::string prefix = std::string(program) + (group.empty() ? "" : " ") + std::string(group);
  fmt::print("usage: {} COMMAND [ARGUMENTS]\n\n", prefix);
  std::vector<TextRow> rows;
  for (const Command& command : commands)
    if (!command.is_internal && (group.empty() || is_in_group(command, group)))
      rows.push_back({std::string(command.name), std::string(command.summary)});
  fmt::print("{}\n", two_columns(rows, help_width()));
  const std::string first = group.empty() ? "" : std::string(group) + " ";
  fmt::print("{0} help {1}COMMAND, or {0} {1}COMMAND --help, describes one command.\n", program,
             first);
}

/// Whether writes to the stream failed because it is a pipe or socket whose other end is closed.
bool is_broken_pipe(std::FILE* stream) {
  struct stat status {};
  if (std::ferror(stream) == 0 || ::fstat(::fileno(stream), &status) != 0) return false;
  if (!S_ISFIFO(status.st_mode) && !S_ISSOCK(status.st_mode)) return false;
  pollfd state{.fd = ::fileno(stream), .events = POLLOUT, .revents = 0};
  return ::poll(&state, 1, 0) == 1 && (state.revents & (POLLERR | POLLHUP)) != 0;
}

/// Ends the process as SIGPIPE would have done at the first write after the reader closed the pipe.
void end_by_sigpipe() {
  std::signal(SIGPIPE, SIG_DFL);
  std::raise(SIGPIPE);
}

int run_and_report_errors(const Command& command, const std::vector<std::string>& args) {
  try {
    return command.run(args);
  } catch (...) {
    const Failure failure = describe_failure(std::current_exception());
    // fmt::print() throws the error of a write to a closed pipe.
    if (is_broken_pipe(stdout)) end_by_sigpipe();
    if (!failure.text.empty()) log_line("error: " + failure.text);
    return failure.exit_code;
  }
}

/// Ignores the signals of failed writes. A failed write then returns an error, and the message can
/// name the file. Such a signal would end the process without a message, also at a write to another
/// rank's socket.
void ignore_write_signals() {
  std::signal(SIGPIPE, SIG_IGN);
  std::signal(SIGXFSZ, SIG_IGN);
}

/// Flushes output that may still be buffered, and checks whether any was lost earlier.
/// @return the exit code: ExitCode::io if output was lost and `result` is 0, otherwise `result`.
int finish_output(int result) {
  errno = 0;
  const bool lost = std::fflush(stdout) != 0 || std::ferror(stdout) != 0;
  const int reason = errno;
  if (is_broken_pipe(stdout)) end_by_sigpipe();
  if (!lost) return result;
  log_info("error: cannot write to standard output{}{}", reason == 0 ? "" : ": ",
           reason == 0 ? "" : std::strerror(reason));
  return result == code(ExitCode::done) ? code(ExitCode::io) : result;
}

/// Finds the command with which `args` begin, and removes its name from them. Returns nullptr if
/// there is no such command.
const Command* take_command(std::span<const Command> commands, std::vector<std::string>& args) {
  if (args.empty()) return nullptr;
  const std::string two = args.size() > 1 ? args[0] + " " + args[1] : "";
  for (const auto& [name, words] : {std::pair(two, 2), std::pair(args[0], 1)}) {
    const auto found = std::ranges::find(commands, name, &Command::name);
    if (found == commands.end()) continue;
    args.erase(args.begin(), args.begin() + words);
    return &*found;
  }
  return nullptr;
}

bool is_group(std::span<const Command> commands, const std::string& name) {
  return std::ranges::any_of(commands,
                             [&](const Command& command) { return is_in_group(command, name); });
}

int report_unknown_command(std::span<const Command> commands,
                           const std::vector<std::string>& args) {
  const bool group = is_group(commands, args[0]);
  std::vector<std::string> names;
  for (const Command& command : commands)
    if (!group || is_in_group(command, args[0])) names.emplace_back(command.name);
  const std::string given = group && args.size() > 1 ? args[0] + " " + args[1] : args[0];
  log_info("error: unknown command '{}'. {}", given, suggest(given, names));
  return code(ExitCode::usage);
}

/// Prints the names and summaries of all commands, then the descriptions of the commands that this
/// program runs.
int describe_all(std::span<const Command> commands) {
  nlohmann::ordered_json list = nlohmann::ordered_json::array();
  for (const Command& command : commands)
    if (!command.is_internal)
      list.push_back({{"name", command.name}, {"summary", command.summary}});
  fmt::print("{}\n", nlohmann::ordered_json{{"commands", list}}.dump());
  for (const Command& command : commands) {
    if (command.is_external || command.is_internal) continue;
    if (const int result = run_and_report_errors(command, {"--help-json"}); result != 0)
      return result;
  }
  return code(ExitCode::done);
}

int show_help(std::string_view program, std::span<const Command> commands,
              std::vector<std::string> args) {
  if (args.empty()) {
    print_list(program, commands, "");
    return code(ExitCode::done);
  }
  const bool json = std::erase(args, "--json") > 0;
  if (args.empty()) return describe_all(commands);
  if (args[0].starts_with("-")) {
    if (json) {
      log_info("error: --json: expected no other option, got {} as well", args[0]);
      return code(ExitCode::usage);
    }
    const auto pages = std::ranges::find(commands, "help", &Command::name);
    if (pages != commands.end()) return run_and_report_errors(*pages, args);
  }
  if (const Command* command = take_command(commands, args))
    return run_and_report_errors(*command, {json ? "--help-json" : "--help"});
  if (!is_group(commands, args[0]) || args.size() > 1)
    return report_unknown_command(commands, args);
  if (json) {
    log_info("error: --json: expected a command, got the group {}", args[0]);
    return code(ExitCode::usage);
  }
  print_list(program, commands, args[0]);
  return code(ExitCode::done);
}

int dispatch(std::string_view program, std::span<const Command> commands,
             std::vector<std::string> args) {
  const auto is_help = [](const std::string& arg) { return arg == "--help" || arg == "-h"; };
  if (args.empty()) {
    print_list(program, commands, "");
    return code(ExitCode::usage);
  }
  if (args[0] == "help") return show_help(program, commands, {args.begin() + 1, args.end()});
  if (is_help(args[0])) return show_help(program, commands, {});
  if (args[0] == "--version" || args[0] == "-V") {
    fmt::print("precast {}\n", kVersion);
    return code(ExitCode::done);
  }
  const std::string first = args[0];
  if (const Command* command = take_command(commands, args))
    return run_and_report_errors(*command, args);
  const bool alone = args.size() == 1;
  if (!is_group(commands, first) || (!alone && !is_help(args[1])))
    return report_unknown_command(commands, args);
  print_list(program, commands, first);
  return code(alone ? ExitCode::usage : ExitCode::done);
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
    const std::string prefix = error.path1().empty() ? error.what() : error.path1().string();
    return {prefix + ": " + error.code().message(), code(ExitCode::io)};
  } catch (const std::system_error& error) {
    // fmt::print() throws it if a stream cannot be written, such as standard output on a full disk.
    // There is no message here, because finish_output() reports the error.
    if (std::ferror(stdout) != 0 || std::ferror(stderr) != 0) return {"", code(ExitCode::io)};
    return {error.what(), code(ExitCode::failed)};
  } catch (const std::exception& error) {
    return {error.what(), code(ExitCode::failed)};
  } catch (...) {
    return {"something was thrown that is not a std::exception", code(ExitCode::failed)};
  }
}

int run_command(std::string_view program, std::span<const Command> commands, int argc,
                char** argv) {
  open_closed_streams();
  ignore_write_signals();
  report_bus_errors();
  return finish_output(dispatch(program, commands, {argv + 1, argv + argc}));
}

}  // namespace precast::tools
