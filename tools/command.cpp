#include "tools/command.h"

#include <fmt/core.h>

#include <cstdio>
#include <exception>
#include <new>

#include "framework/core/error.h"
#include "framework/core/suggest.h"
#include "tools/version.h"

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
  } catch (const Error& error) {
    fmt::print(stderr, "error: {}\n", error.what());
    return code(error.exit_code());
  } catch (const std::bad_alloc&) {
    fmt::print(stderr, "error: out of memory\n");
    return code(ExitCode::out_of_memory);
  } catch (const std::exception& error) {
    fmt::print(stderr, "error: {}\n", error.what());
    return code(ExitCode::failed);
  }
}

}  // namespace

int run_command(std::string_view program, std::span<const Command> commands, int argc,
                char** argv) {
  const std::vector<std::string> args(argv + 1, argv + argc);
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
  fmt::print(stderr, "error: unknown command '{}'. {}\n", args[0], suggest(args[0], names));
  return code(ExitCode::usage);
}

}  // namespace precast::tools
