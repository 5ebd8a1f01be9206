#include "framework/core/failpoint.h"

#include <fmt/core.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <csignal>
#include <cstdlib>
#include <map>
#include <string>
#include <thread>

#include "framework/core/error.h"
#include "framework/core/parse_number.h"

namespace precast {
namespace {

constexpr std::string_view kSleep = "sleep:";

struct Trap {
  /// Checked by check_action().
  std::string action;
  /// The action happens the at_hit-th time that the failpoint is reached, counted from 1; 0: every
  /// time.
  int at_hit = 0;
  std::atomic<int> hits{0};
};

using Armed = std::map<std::string, Trap, std::less<>>;

int required_number(std::string_view digits, std::string_view action) {
  const auto number = parse_number<int>(digits);
  if (!number) {
    throw ConfigError(fmt::format(
        "PRECAST_FAILPOINTS: expected a number after @, % or sleep:, got '{}'", action));
  }
  return *number;
}

/// The rank that precast's launcher or torchrun has set in the environment; -1 if there is none.
int this_rank() {
  for (const char* variable : {"PRECAST_RANK", "RANK"}) {
    if (const char* rank = std::getenv(variable); rank != nullptr) return std::atoi(rank);
  }
  return -1;
}

/// @throws ConfigError
void check_action(std::string_view action) {
  constexpr std::array<std::string_view, 5> kActions = {"kill", "stop", "term", "exit", "error"};
  if (action.starts_with(kSleep)) {
    static_cast<void>(required_number(action.substr(kSleep.size()), action));
  } else if (std::ranges::find(kActions, action) == kActions.end()) {
    throw ConfigError(fmt::format(
        "PRECAST_FAILPOINTS: expected kill, stop, term, exit, error or sleep:MS, got '{}'",
        action));
  }
}

Armed read_environment() {
  Armed armed;
  const char* text = std::getenv("PRECAST_FAILPOINTS");
  std::string_view rest = text == nullptr ? "" : text;
  while (!rest.empty()) {
    const std::string_view item = rest.substr(0, rest.find(','));
    rest.remove_prefix(std::min(rest.size(), item.size() + 1));
    const std::size_t equals = item.find('=');
    const std::string_view name = item.substr(0, equals);
    if (std::ranges::find(kFailpoints, name) == std::end(kFailpoints) ||
        equals == std::string_view::npos) {
      throw ConfigError(fmt::format(
          "PRECAST_FAILPOINTS: expected NAME=ACTION with a known name, got '{}'", item));
    }
    std::string_view action = item.substr(equals + 1);
    bool matches_rank = true;
    if (const std::size_t percent = action.find('%'); percent != std::string_view::npos) {
      matches_rank = required_number(action.substr(percent + 1), item) == this_rank();
      action = action.substr(0, percent);
    }
    int at_hit = 0;
    if (const std::size_t at = action.find('@'); at != std::string_view::npos) {
      at_hit = required_number(action.substr(at + 1), item);
      action = action.substr(0, at);
    }
    check_action(action);
    if (!matches_rank) continue;
    Trap& trap = armed[std::string(name)];
    trap.action = action;
    trap.at_hit = at_hit;
  }
  return armed;
}

void act(std::string_view name, std::string_view action) {
  if (action == "kill") {
    std::raise(SIGKILL);
  } else if (action == "stop") {
    ::kill(::getpid(), SIGSTOP);
  } else if (action == "term") {
    ::kill(::getpid(), SIGTERM);
  } else if (action == "exit") {
    ::_exit(static_cast<int>(ExitCode::failed));
  } else if (action == "error") {
    throw IoError(fmt::format("failpoint {}: error requested by PRECAST_FAILPOINTS", name));
  } else {
    const int sleep_ms = required_number(action.substr(kSleep.size()), action);
    std::this_thread::sleep_for(std::chrono::milliseconds(sleep_ms));
  }
}

}  // namespace

void failpoint(std::string_view name) {
  static Armed armed = read_environment();
  if (armed.empty()) return;
  const auto found = armed.find(name);
  if (found == armed.end()) return;
  Trap& trap = found->second;
  const int pass = ++trap.hits;
  if (trap.at_hit == 0 || trap.at_hit == pass) act(name, trap.action);
}

}  // namespace precast
