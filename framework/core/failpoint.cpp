#include "framework/core/failpoint.h"

#include <fmt/core.h>

#include <algorithm>
#include <charconv>
#include <chrono>
#include <csignal>
#include <cstdlib>
#include <map>
#include <string>
#include <thread>

#include "framework/core/error.h"

namespace precast {
namespace {

using Armed = std::map<std::string, std::string, std::less<>>;

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
      throw ConfigError(fmt::format("PRECAST_FAILPOINTS: expected NAME=ACTION, got '{}'", item));
    }
    armed.emplace(name, item.substr(equals + 1));
  }
  return armed;
}

void act(std::string_view name, std::string_view action) {
  if (action == "kill") {
    std::raise(SIGKILL);
  } else if (action == "error") {
    throw IoError(fmt::format("failpoint {}: asked to fail here", name));
  } else if (action.starts_with("sleep:")) {
    const std::string_view digits = action.substr(6);
    int milliseconds = 0;
    const auto [end, failure] =
        std::from_chars(digits.data(), digits.data() + digits.size(), milliseconds);
    if (failure != std::errc() || end != digits.data() + digits.size()) {
      throw ConfigError(
          fmt::format("PRECAST_FAILPOINTS: expected sleep:MILLISECONDS, got '{}'", action));
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(milliseconds));
  } else {
    throw ConfigError(
        fmt::format("PRECAST_FAILPOINTS: expected kill, error or sleep:MS, got '{}'", action));
  }
}

}  // namespace

void failpoint(std::string_view name) {
  static const Armed armed = read_environment();
  if (armed.empty()) return;
  const auto found = armed.find(name);
  if (found != armed.end()) act(name, found->second);
}

}  // namespace precast
