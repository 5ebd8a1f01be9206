#include "data/order/sample_list.h"

#include <fmt/core.h>

#include <algorithm>
#include <cstddef>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "framework/core/error.h"
#include "framework/core/file.h"
#include "framework/core/parse_number.h"

namespace precast::data {
namespace {

/// The samples from `first` to `end` - 1, and the line that lists them.
struct Range {
  std::uint64_t first = 0;
  std::uint64_t end = 0;
  std::size_t line = 0;
};

/// `N` or `A:B`; nothing if the line is neither.
std::optional<Range> parse_line(std::string_view text, std::size_t line) {
  const std::size_t colon = text.find(':');
  const auto first = parse_number<std::uint64_t>(text.substr(0, colon));
  if (!first || *first == UINT64_MAX) return std::nullopt;
  if (colon == std::string_view::npos) return Range{*first, *first + 1, line};
  const auto end = parse_number<std::uint64_t>(text.substr(colon + 1));
  if (!end || *end <= *first) return std::nullopt;
  return Range{*first, *end, line};
}

std::string_view trimmed(std::string_view text) {
  constexpr const char* kBlanks = " \t\r";
  const std::size_t begin = text.find_first_not_of(kBlanks);
  if (begin == std::string_view::npos) return {};
  return text.substr(begin, text.find_last_not_of(kBlanks) + 1 - begin);
}

std::vector<Range> parse_ranges(std::string_view text, const std::string& file, std::uint64_t size,
                                std::string_view dataset_name) {
  std::vector<Range> ranges;
  for (std::size_t number = 1; !text.empty(); ++number) {
    const std::size_t end = std::min(text.find('\n'), text.size());
    const std::string_view full_line = text.substr(0, end);
    const std::string_view line = trimmed(full_line.substr(0, full_line.find('#')));
    text.remove_prefix(std::min(end + 1, text.size()));
    if (line.empty()) continue;
    const std::optional<Range> range = parse_line(line, number);
    if (!range) {
      throw ConfigError(fmt::format("subset: {}:{}: expected a sample id, or a range A:B, got '{}'",
                                    file, number, line.substr(0, 40)));
    }
    if (range->end > size) {
      throw ConfigError(
          fmt::format("subset: {}:{}: expected sample ids below {}, the size of {}, got {}", file,
                      number, size, dataset_name, line));
    }
    ranges.push_back(*range);
  }
  return ranges;
}

}  // namespace

SampleSet parse_sample_list(std::string_view text, const std::string& file, std::uint64_t size,
                            std::string_view dataset_name) {
  std::vector<Range> ranges = parse_ranges(text, file, size, dataset_name);
  if (ranges.empty())
    throw ConfigError(fmt::format("subset: {}: expected at least one sample, got none", file));
  std::ranges::stable_sort(ranges, {}, &Range::first);
  std::vector<std::uint64_t> ids;
  for (std::size_t i = 0; i < ranges.size(); ++i) {
    const Range& range = ranges[i];
    if (i > 0 && range.first < ranges[i - 1].end) {
      const auto [earlier, later] = std::minmax(ranges[i - 1].line, range.line);
      throw ConfigError(
          fmt::format("subset: {}:{}: expected each sample once, got {} again (see line {})", file,
                      later, range.first, earlier));
    }
    for (std::uint64_t id = range.first; id < range.end; ++id) ids.push_back(id);
  }
  return SampleSet(std::move(ids));
}

SampleSet read_sample_list(const std::filesystem::path& file, std::uint64_t size,
                           std::string_view dataset_name) {
  std::vector<std::byte> bytes;
  try {
    bytes = read_file(file);
  } catch (const IoError& error) {
    throw ConfigError(fmt::format("subset: {}", error.what()));
  }
  return parse_sample_list({reinterpret_cast<const char*>(bytes.data()), bytes.size()},
                           file.string(), size, dataset_name);
}

}  // namespace precast::data
