#pragma once

#include <boost/program_options/options_description.hpp>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "data/transforms/image_pipeline.h"

namespace precast::tools {

class Arguments;

/// One point of a sweep of `bench loader`.
struct LoaderSetting {
  /// Processes that read the file at once, each with a loader of its own.
  int processes = 1;
  /// A process.
  int workers = 1;
  std::int64_t batch_size = 256;
  std::int64_t image_size_px = 176;
  std::string order = "random";
  std::string format = "u8";
  std::string layout = "nhwc";
  /// Whether the file is mapped, from the page cache; else pages are read into `cache_bytes` of the
  /// process.
  bool in_memory = true;
  /// Whether the loader keeps where in JPEGs it can begin, which it finds while it warms up.
  bool jpeg_index = false;

  /// `pipeline` with format and layout.
  [[nodiscard]] data::ImagePipeline with_pixels(data::ImagePipeline pipeline) const;
  /// Option names and values, as {"workers", "2"}, in one order for all settings.
  [[nodiscard]] std::vector<std::pair<std::string, std::string>> values() const;
};

/// Adds the options that LoaderSetting has; each takes one value or several with commas between.
void add_sweep_options(boost::program_options::options_description& options);

/// The cross product of all lists, the last option of values() changing fastest.
/// @throws ConfigError naming the option if a value is none of its own.
[[nodiscard]] std::vector<LoaderSetting> read_sweep(const Arguments& arguments);

}  // namespace precast::tools
