#include "tools/commands/inspect_values.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <nlohmann/json.hpp>

namespace precast::tools {
namespace {

using data::BetonReader;
using data::FieldType;
using Json = nlohmann::ordered_json;

/// Minimum, mean and maximum of a stream of integers.
struct Range {
  std::int64_t min = INT64_MAX;
  std::int64_t max = INT64_MIN;
  double sum = 0;
  std::uint64_t count = 0;

  void add(std::int64_t value) {
    min = std::min(min, value);
    max = std::max(max, value);
    sum += static_cast<double>(value);
    ++count;
  }
  [[nodiscard]] double mean() const { return count == 0 ? 0 : sum / static_cast<double>(count); }
  [[nodiscard]] Json json() const { return {{"min", min}, {"mean", mean()}, {"max", max}}; }
};

Json describe_images(const BetonReader& reader, std::size_t field) {
  Range width;
  Range height;
  Range bytes;
  std::uint64_t jpg = 0;
  for (std::uint64_t i = 0; i < reader.size(); ++i) {
    // Reads only the records, so that no image of a remote file is fetched.
    const BetonReader::ImageSize size = reader.image_size(i, field);
    width.add(size.width);
    height.add(size.height);
    bytes.add(static_cast<std::int64_t>(reader.blob_bytes(i, field)));
    if (reader.image_mode(i, field) == data::ImageMode::jpg) ++jpg;
  }
  return {{"jpg", jpg},
          {"raw", reader.size() - jpg},
          {"width", width.json()},
          {"height", height.json()},
          {"blob_bytes", bytes.json()}};
}

Json describe_integers(const BetonReader& reader, std::size_t field, bool with_labels) {
  Range values;
  std::map<std::int64_t, std::int64_t> histogram;
  std::vector<std::int64_t> labels;
  for (std::uint64_t i = 0; i < reader.size(); ++i) {
    const std::int64_t value = reader.integer(i, field);
    values.add(value);
    ++histogram[value];
    if (with_labels) labels.push_back(value);
  }
  Range per_value;
  for (const auto& [value, count] : histogram) per_value.add(count);
  Json report = {{"min", values.min},
                 {"max", values.max},
                 {"distinct", histogram.size()},
                 {"samples_per_value", per_value.json()}};
  if (with_labels) report["labels"] = labels;
  return report;
}

/// The minimum and the maximum, which ignore NaN values, and the number of NaN values.
Json describe_floats(const BetonReader& reader, std::size_t field) {
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  double low = kInfinity;
  double high = -kInfinity;
  std::uint64_t nan = 0;
  for (std::uint64_t i = 0; i < reader.size(); ++i) {
    const double value = reader.floating(i, field);
    if (std::isnan(value)) {
      ++nan;
      continue;
    }
    low = std::min(low, value);
    high = std::max(high, value);
  }
  Json report = Json::object();
  if (nan < reader.size()) report = {{"min", number_json(low)}, {"max", number_json(high)}};
  if (nan > 0) report["nan"] = nan;
  return report;
}

/// The size of values that are stored in pages.
Json describe_blobs(const BetonReader& reader, std::size_t index) {
  const bool custom = reader.fields()[index].type == FieldType::custom;
  Range bytes;
  for (std::uint64_t i = 0; i < reader.size(); ++i) {
    std::uint64_t size = reader.blob_bytes(i, index);
    if (custom)
      for (const data::Allocation& blob : reader.unclaimed(i)) size += blob.size;
    bytes.add(static_cast<std::int64_t>(size));
  }
  return {{"blob_bytes", bytes.json()}};
}

}  // namespace

Json number_json(double value) {
  return std::isfinite(value) ? Json(value) : Json(fmt::to_string(value));
}

Json describe_values(const BetonReader& reader, std::size_t index, bool with_labels) {
  switch (reader.fields()[index].type) {
    case FieldType::image:
      return describe_images(reader, index);
    case FieldType::integer:
      return describe_integers(reader, index, with_labels);
    case FieldType::floating:
      return describe_floats(reader, index);
    default:
      return describe_blobs(reader, index);
  }
}

}  // namespace precast::tools
