#pragma once

#include <fmt/format.h>

#include <filesystem>
#include <string>
#include <vector>

#include "data/sources/register.h"

namespace precast::test {

/// The label and the image of a sample that consists of an image and a label. @{
inline std::int64_t label_of(const data::Sample& sample) {
  return std::get<std::int64_t>(sample.values[1]);
}
inline const data::ImageInput& image_of(const data::Sample& sample) {
  return std::get<data::ImageInput>(sample.values[0]);
}
/// @}

/// A line for each sample: its name after the last `root`, and its label, such as `cat/a.JPEG 0`.
inline std::vector<std::string> listing(const data::Source& source, const std::string& root) {
  std::vector<std::string> lines;
  for (std::uint64_t i = 0; i < source.size(); ++i) {
    const data::Sample sample = source.sample(i);
    const std::string name = sample.name.substr(sample.name.rfind(root) + root.size());
    lines.push_back(fmt::format("{} {}", name, label_of(sample)));
  }
  return lines;
}

/// A callable that opens `path`, for matchers of the exception that open_source throws.
inline auto opener(const std::filesystem::path& path, const std::string& kind = "auto") {
  return [path, kind] { (void)data::open_source(path, kind); };
}

/// Options of a source with the single entry `name: value`.
inline ConfigNode option(const std::string& name, const std::string& value) {
  ConfigNode options;
  options.kind = ConfigNode::Kind::map;
  ConfigNode scalar;
  scalar.kind = ConfigNode::Kind::scalar;
  scalar.scalar = value;
  options.entries.push_back({name, {}, scalar});
  return options;
}

}  // namespace precast::test
