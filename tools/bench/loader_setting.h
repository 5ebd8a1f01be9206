#pragma once

#include <boost/program_options/options_description.hpp>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "data/beton/reader.h"
#include "data/loader/loader.h"
#include "data/transforms/pipeline.h"

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
  /// 1: mapped. 0: pages of the file in memory of each process, `cache_mb` of it.
  int in_memory = 1;
  std::int64_t cache_mb = 256;
  /// Whether checkpoints of JPEGs are used: from the sidecar, else found in the warm-up pass.
  std::string jpeg_index = "on";

  /// How the file is to be opened.
  [[nodiscard]] data::BlobAccess access() const;
  /// What Loader is to be made with for that file.
  [[nodiscard]] data::LoaderOptions loader_options(const data::BetonReader& reader) const;
  /// The pipeline in the setting's format and layout. @param val centre crops.
  [[nodiscard]] data::Pipeline pipeline(bool val) const;
  /// Option names and values, as {"workers", "2"}, in one order for all settings.
  [[nodiscard]] std::vector<std::pair<std::string, std::string>> values() const;
};

/// Adds the options that LoaderSetting has; each takes one value or several with commas between.
void add_sweep_options(boost::program_options::options_description& options);

/// The cross product of all lists, the last option of values() changing fastest.
/// @throws ConfigError naming the option if a value is none of its own.
[[nodiscard]] std::vector<LoaderSetting> read_sweep(const Arguments& arguments);

}  // namespace precast::tools
