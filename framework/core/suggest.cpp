#include "framework/core/suggest.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "framework/core/lower_case.h"

namespace precast {
namespace {

/// The smallest number of edits (insert, delete, replace, swap of neighbours) that turn `a` into
/// `b`.
std::size_t edit_distance(std::string_view a, std::string_view b) {
  std::vector<std::size_t> before(b.size() + 1), last(b.size() + 1), row(b.size() + 1);
  for (std::size_t j = 0; j <= b.size(); ++j) last[j] = j;
  for (std::size_t i = 1; i <= a.size(); ++i) {
    row[0] = i;
    for (std::size_t j = 1; j <= b.size(); ++j) {
      const bool same = a[i - 1] == b[j - 1];
      row[j] = std::min({last[j] + 1, row[j - 1] + 1, last[j - 1] + (same ? 0U : 1U)});
      const bool swapped = i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1];
      if (swapped) row[j] = std::min(row[j], before[j - 2] + 1);
    }
    before.swap(last);
    last.swap(row);
  }
  return last[b.size()];
}

/// The name to suggest; null if none is similar.
const std::string* find_similar(std::string_view name, const std::vector<std::string>& known) {
  const std::string* nearest = nullptr;
  std::size_t nearest_distance = 0;
  for (const std::string& candidate : known) {
    const std::size_t distance = edit_distance(lower_case(name), lower_case(candidate));
    if (nearest == nullptr || distance < nearest_distance) {
      nearest = &candidate;
      nearest_distance = distance;
    }
  }
  const bool is_similar =
      nearest != nullptr && nearest_distance <= std::max<std::size_t>(1, nearest->size() / 3);
  return is_similar ? nearest : nullptr;
}

}  // namespace

std::string suggest(std::string_view name, const std::vector<std::string>& known) {
  if (known.empty()) return "Known: none.";
  if (const std::string* similar = find_similar(name, known))
    return fmt::format("Did you mean '{}'?", *similar);
  return fmt::format("Known: {}.", fmt::join(known, ", "));
}

std::string suggest_similar(std::string_view name, const std::vector<std::string>& known) {
  const std::string* similar = find_similar(name, known);
  return similar == nullptr ? "" : fmt::format(". Did you mean '{}'?", *similar);
}

}  // namespace precast
