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

/// One combination of the values of the options of `bench loader`.
struct LoaderSetting {
  /// Processes that read the file at the same time, each with its own loader.
  int processes = 1;
  /// Loader threads of each process.
  int workers = 1;
  std::int64_t batch_size = 256;
  std::int64_t image_size_px = 176;
  std::string order = "random";
  std::string format = "u8";
  std::string layout = "nhwc";
  /// 1: mapped. 0: pages of the file are cached in the memory of each process, up to `cache_mb`.
  int in_memory = 1;
  std::int64_t cache_mb = 256;
  /// "on": use the JPEG index from the sidecar, or build one in the first pass. "off": decode
  /// without a JPEG index.
  std::string jpeg_index = "on";

  /// How to open the file.
  [[nodiscard]] data::BlobAccess access() const;
  /// The loader options for the file that `reader` has opened.
  [[nodiscard]] data::LoaderOptions loader_options(const data::BetonReader& reader) const;
  /// The standard pipeline with the setting's format and layout. @param val whether to use centre
  /// crops instead of random resized crops and flips.
  [[nodiscard]] data::Pipeline pipeline(bool val) const;
  /// Returns a recipe's pipeline. Outputs for which the recipe sets no type have the setting's
  /// format and layout.
  [[nodiscard]] data::Pipeline formatted(data::Pipeline recipe) const;
  /// Option names and values, such as {"workers", "2"}, in the same order for all settings.
  [[nodiscard]] std::vector<std::pair<std::string, std::string>> values() const;
};

/// Adds the options of LoaderSetting; each takes one value or several separated by commas.
void add_sweep_options(boost::program_options::options_description& options);

/// Returns all combinations of the listed values; the last option of values() changes fastest.
/// @throws ConfigError naming the option that has an invalid value.
[[nodiscard]] std::vector<LoaderSetting> read_sweep(const Arguments& arguments);

}  // namespace precast::tools
