#include "framework/launch/slurm.h"

#include <fmt/core.h>

#include <cstddef>

#include "framework/core/parse_number.h"

namespace precast {
namespace {

constexpr std::size_t kMaxHosts = 1'000'000;

std::optional<int> number(std::string_view digits) {
  const auto value = parse_number<int>(digits);
  return value && *value >= 0 ? value : std::nullopt;
}

/// Splits off the text before the first `separator` outside brackets.
std::string_view next_item(std::string_view& rest, char separator) {
  std::size_t end = 0;
  int depth = 0;
  for (; end < rest.size(); ++end) {
    if (rest[end] == '[') ++depth;
    if (rest[end] == ']') --depth;
    if (rest[end] == separator && depth == 0) break;
  }
  const std::string_view piece = rest.substr(0, end);
  rest.remove_prefix(end < rest.size() ? end + 1 : end);
  return piece;
}

/// Appends the numbers of a range such as `01-03` or `07`. @return false if it is not a range.
bool append_range(std::string_view range, std::vector<std::string>& numbers) {
  const std::size_t dash = range.find('-');
  const std::string_view from = range.substr(0, dash);
  const std::string_view to = dash == range.npos ? from : range.substr(dash + 1);
  const std::optional<int> first = number(from);
  const std::optional<int> last = number(to);
  if (!first || !last || *last < *first) return false;
  if (static_cast<std::size_t>(*last - *first) >= kMaxHosts - numbers.size()) return false;
  for (int i = *first; i <= *last; ++i) numbers.push_back(fmt::format("{:0{}}", i, from.size()));
  return true;
}

/// Appends the hosts of one entry, such as `rack[0-1]node[1-2]-ib`. @return false if the entry is
/// not valid.
bool append_hosts(std::string_view pattern, std::vector<std::string>& hosts) {
  std::vector<std::string> names{""};
  while (!pattern.empty()) {
    const std::size_t open = pattern.find('[');
    for (std::string& name : names) name += pattern.substr(0, open);
    if (open == pattern.npos) break;
    const std::size_t close = pattern.find(']', open);
    if (close == pattern.npos) return false;
    std::string_view ranges = pattern.substr(open + 1, close - open - 1);
    pattern.remove_prefix(close + 1);
    std::vector<std::string> numbers;
    while (!ranges.empty()) {
      if (!append_range(next_item(ranges, ','), numbers)) return false;
    }
    if (numbers.empty() || names.size() * numbers.size() > kMaxHosts) return false;
    std::vector<std::string> longer;
    for (const std::string& name : names) {
      for (const std::string& digits : numbers) longer.push_back(name + digits);
    }
    names = std::move(longer);
  }
  hosts.insert(hosts.end(), names.begin(), names.end());
  return hosts.size() <= kMaxHosts;
}

}  // namespace

std::optional<std::vector<std::string>> expand_hosts(std::string_view node_list) {
  std::vector<std::string> hosts;
  while (!node_list.empty()) {
    const std::string_view pattern = next_item(node_list, ',');
    if (pattern.empty() || !append_hosts(pattern, hosts)) return std::nullopt;
  }
  if (hosts.empty()) return std::nullopt;
  return hosts;
}

std::optional<int> tasks_on_node(std::string_view tasks_per_node, int node) {
  while (!tasks_per_node.empty()) {
    std::string_view entry = next_item(tasks_per_node, ',');
    std::optional<int> repeated = 1;
    if (const std::size_t open = entry.find("(x"); open != entry.npos) {
      if (!entry.ends_with(')')) return std::nullopt;
      repeated = number(entry.substr(open + 2, entry.size() - open - 3));
      entry = entry.substr(0, open);
    }
    const std::optional<int> tasks = number(entry);
    if (!tasks || !repeated) return std::nullopt;
    if (node < *repeated) return tasks;
    node -= *repeated;
  }
  return std::nullopt;
}

}  // namespace precast
