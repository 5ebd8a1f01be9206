#include "tools/commands/inspect_histogram.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cstdint>
#include <map>
#include <nlohmann/json.hpp>
#include <numeric>
#include <optional>
#include <vector>

#include "data/beton/file_info.h"
#include "framework/core/format.h"
#include "tools/commands/sample_choice.h"

namespace precast::tools {
namespace {

using data::BetonReader;
using data::FieldType;
using Json = nlohmann::ordered_json;
using Ids = std::vector<std::uint64_t>;

/// An int field with more distinct values does not contain class labels.
constexpr std::size_t kMaxClasses = 10000;
constexpr int kSideBins = 10;
constexpr std::size_t kShownIds = 20;
/// If there are many classes, this many of the largest and as many of the smallest are shown.
constexpr std::size_t kShownClasses = 10;
constexpr double kBarWidth = 40;
/// Labels up to this width are padded, so that their bars begin in the same column.
constexpr std::size_t kMaxLabelWidth = 40;

Json count_classes(const BetonReader& reader, const Ids& ids, std::size_t field) {
  std::map<std::int64_t, std::uint64_t> counts;
  for (const std::uint64_t id : ids) ++counts[reader.integer(id, field)];
  const std::vector<std::string> names = data::class_names_of(reader, field);
  Json classes = Json::array();
  if (counts.size() > kMaxClasses) return classes;
  for (const auto& [label, count] : counts) {
    Json entry = {{"label", label}};
    if (label >= 0 && static_cast<std::uint64_t>(label) < names.size())
      entry["name"] = names[static_cast<std::size_t>(label)];
    entry["count"] = count;
    classes.push_back(std::move(entry));
  }
  return classes;
}

/// Counts in bins of equal width.
Json count_sides(const BetonReader& reader, const Ids& ids, std::size_t field) {
  std::map<int, std::uint64_t> counts;
  for (const std::uint64_t id : ids) {
    const BetonReader::ImageSize size = reader.image_size(id, field);
    ++counts[std::max(size.width, size.height)];
  }
  const int low = counts.begin()->first;
  const int width = std::max(1, (counts.rbegin()->first - low + kSideBins) / kSideBins);
  Json bins = Json::array();
  for (int from = low; from <= counts.rbegin()->first; from += width) {
    std::uint64_t count = 0;
    const auto end = counts.lower_bound(from + width);
    for (auto at = counts.lower_bound(from); at != end; ++at) count += at->second;
    bins.push_back({{"from", from}, {"to", from + width}, {"count", count}});
  }
  return bins;
}

Json count_bytes(const BetonReader& reader, const Ids& ids) {
  Json bytes = Json::object();
  for (std::size_t field = 0; field < reader.fields().size(); ++field) {
    std::uint64_t sum = 0;
    for (const std::uint64_t id : ids) sum += reader.blob_bytes(id, field);
    if (sum > 0) bytes[reader.fields()[field].name] = sum;
  }
  return bytes;
}

struct Bar {
  std::string label;
  std::uint64_t count = 0;
};

void print_bars(const std::vector<Bar>& bars, std::uint64_t most) {
  std::size_t width = 0;
  for (const Bar& bar : bars)
    if (bar.label.size() <= kMaxLabelWidth) width = std::max(width, bar.label.size());
  for (const Bar& bar : bars) {
    const double length = kBarWidth * static_cast<double>(bar.count) / static_cast<double>(most);
    fmt::print("  {:<{}} {:#<{}} {}\n", bar.label, width, "",
               std::max<std::size_t>(bar.count > 0 ? 1 : 0, static_cast<std::size_t>(length)),
               bar.count);
  }
}

std::string class_text(const Json& entry) {
  const auto label = entry["label"].get<std::int64_t>();
  if (!entry.contains("name")) return fmt::to_string(label);
  return fmt::format("{} {}", label, entry["name"].get<std::string>());
}

/// Lists the classes, as in `: 0 cats, 1 dogs`; empty if the file has no names.
std::string names_text(const Json& classes) {
  std::string text;
  for (std::size_t i = 0; i < std::min(classes.size(), 2 * kShownClasses); ++i) {
    if (!classes[i].contains("name")) return {};
    text += (i == 0 ? ": " : ", ") + class_text(classes[i]);
  }
  if (classes.size() > 2 * kShownClasses)
    text += fmt::format(", ... {} more; --json lists all", classes.size() - 2 * kShownClasses);
  return text;
}

void print_classes(const Json& classes) {
  std::vector<Bar> bars;
  for (const Json& entry : classes)
    bars.push_back({class_text(entry), entry["count"].get<std::uint64_t>()});
  const auto [fewest, largest] = std::ranges::minmax_element(bars, {}, &Bar::count);
  const std::uint64_t most = largest->count;
  if (fewest->count == most) {
    fmt::print("{} of {} each{}\n", format_count(bars.size(), "class"),
               format_count(most, "sample"), names_text(classes));
    return;
  }
  fmt::print("{}:\n", format_count(bars.size(), "class"));
  if (bars.size() <= 2 * kShownClasses) return print_bars(bars, most);
  std::ranges::stable_sort(bars, std::ranges::greater{}, &Bar::count);
  constexpr auto kShown = static_cast<std::ptrdiff_t>(kShownClasses);
  print_bars({bars.begin(), bars.begin() + kShown}, most);
  fmt::print("  ... {} more; --json lists all\n", bars.size() - 2 * kShownClasses);
  print_bars({bars.end() - kShown, bars.end()}, most);
}

void print_sides(const Json& sides) {
  std::vector<Bar> bars;
  std::uint64_t most = 1;
  for (const Json& bin : sides) {
    const int last = bin["to"].get<int>() - 1;
    bars.push_back({fmt::format("{} to {} px", bin["from"].get<int>(), last),
                    bin["count"].get<std::uint64_t>()});
    most = std::max(most, bars.back().count);
  }
  fmt::print("longer side:\n");
  print_bars(bars, most);
}

}  // namespace

Json describe_chosen(const Arguments& arguments, const BetonReader& reader,
                     const std::optional<Ids>& chosen) {
  Json report = Json::object();
  Ids ids;
  if (chosen) {
    ids = *chosen;
    report["chosen"] = ids.size();
    report["ids"] = ids;
  } else {
    ids.resize(reader.size());
    std::iota(ids.begin(), ids.end(), 0);
  }
  report["field_bytes"] = count_bytes(reader, ids);
  const bool labelled = reader.first_field(FieldType::integer) < reader.fields().size();
  if (labelled || arguments.given("label-field"))
    report["classes"] = count_classes(reader, ids, chosen_label_field(arguments, reader));
  const std::size_t image = reader.first_field(FieldType::image);
  if (image < reader.fields().size()) report["longer_side"] = count_sides(reader, ids, image);
  return report;
}

void print_chosen(const Json& report) {
  if (report.contains("ids")) {
    const auto ids = report["ids"].get<Ids>();
    const std::span shown(ids.data(), std::min(ids.size(), kShownIds));
    fmt::print("{} of {}: {}{}\n", ids.size(),
               format_count(report["samples"].get<std::uint64_t>(), "sample"),
               fmt::join(shown, " "), shown.size() < ids.size() ? " ...; --json lists all" : "");
    for (const auto& [name, bytes] : report["field_bytes"].items())
      fmt::print("{} of these samples: {}\n", name, format_bytes(bytes.get<double>()));
  }
  if (report.contains("classes") && !report["classes"].empty()) print_classes(report["classes"]);
  if (report.contains("longer_side")) print_sides(report["longer_side"]);
}

}  // namespace precast::tools
