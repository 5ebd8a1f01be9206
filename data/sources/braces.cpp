#include "data/sources/braces.h"

#include <fmt/core.h>

#include <cstdint>

#include "framework/core/error.h"
#include "framework/core/parse_number.h"

namespace precast::data {
namespace {

constexpr std::size_t kMaxNames = 1'000'000;

/// Expands the text between braces.
std::vector<std::string> expand_group(std::string_view group, std::string_view pattern) {
  std::vector<std::string> names;
  const std::size_t dots = group.find("..");
  if (dots != std::string_view::npos) {
    const auto first = parse_number<std::uint64_t>(group.substr(0, dots));
    const auto last = parse_number<std::uint64_t>(group.substr(dots + 2));
    if (first && last && *first <= *last && *last - *first < kMaxNames) {
      for (std::uint64_t i = 0; i <= *last - *first; ++i)
        names.push_back(fmt::format("{:0{}}", *first + i, dots));
      return names;
    }
  } else if (group.find(',') != std::string_view::npos) {
    while (true) {
      const std::string_view one = group.substr(0, group.find(','));
      names.emplace_back(one);
      if (one.size() == group.size()) return names;
      group.remove_prefix(one.size() + 1);
    }
  }
  throw ConfigError(fmt::format(
      "{}: expected braces such as {{000..127}} (at most {} numbers) or {{a,b}}, got {{{}}}",
      pattern, kMaxNames, group));
}

}  // namespace

std::vector<std::string> expand_braces(std::string_view pattern) {
  const std::size_t open = pattern.find('{');
  if (open == std::string_view::npos) return {std::string(pattern)};
  const std::size_t close = pattern.find('}', open);
  if (close == std::string_view::npos)
    throw ConfigError(fmt::format("{}: expected a closing brace, got none", pattern));
  const auto middle = expand_group(pattern.substr(open + 1, close - open - 1), pattern);
  const auto ends = expand_braces(pattern.substr(close + 1));
  if (middle.size() * ends.size() > kMaxNames) {
    throw ConfigError(fmt::format("{}: expected at most {} names, got {}", pattern, kMaxNames,
                                  middle.size() * ends.size()));
  }
  std::vector<std::string> names;
  for (const std::string& one : middle)
    for (const std::string& end : ends)
      names.push_back(fmt::format("{}{}{}", pattern.substr(0, open), one, end));
  return names;
}

std::vector<std::filesystem::path> source_paths(const std::filesystem::path& source) {
  // A pattern can be longer than the maximum length of a file name.
  std::error_code unknown;
  if (std::filesystem::exists(source, unknown)) return {source};
  const std::vector<std::string> names = expand_braces(source.string());
  return {names.begin(), names.end()};
}

}  // namespace precast::data
