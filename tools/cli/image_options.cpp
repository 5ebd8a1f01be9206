#include "tools/cli/image_options.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <boost/program_options/value_semantic.hpp>
#include <cstdint>
#include <string>
#include <vector>

#include "framework/core/error.h"

namespace precast::tools {

void add_image_options(boost::program_options::options_description& options, const char* mode) {
  namespace po = boost::program_options;
  const data::ImageFieldOptions image;
  options.add_options()("image.mode", po::value<std::string>()->default_value(mode),
                        "how images are stored: raw, jpg, smart, proportion, or keep (JPEGs as "
                        "JPEG, all else raw)")(
      "image.max_resolution", number(0), "reduce the longer side to this many pixels; 0: never")(
      "image.quality", number(image.jpeg_quality), "JPEG quality, 1 to 100")(
      "image.compress_probability",
      po::value<double>()->default_value(image.compress_probability, "0.5"),
      "mode proportion: share of images stored as JPEG")(
      "image.smart_threshold", number(0),
      "mode smart: images of more bytes (height x width x 3) are stored as JPEG")(
      "image.passthrough", po::bool_switch(),
      "keep the bytes of grey and YCbCr JPEGs that need no resize and decode without a warning");
}

data::ImageFieldOptions image_options(const Arguments& arguments) {
  data::ImageFieldOptions image;
  image.mode = data::image_write_mode(arguments.text("image.mode"));
  image.max_resolution_px = static_cast<int>(integer(arguments, "image.max_resolution", 0, 65535));
  image.jpeg_quality = static_cast<int>(integer(arguments, "image.quality", 1, 100));
  image.compress_probability = arguments.get<double>("image.compress_probability");
  image.smart_threshold_bytes =
      static_cast<std::uint64_t>(integer(arguments, "image.smart_threshold", 0, INT64_MAX));
  image.passthrough = arguments.get<bool>("image.passthrough");
  const auto expect_mode = [&](const char* option, data::ImageWriteMode mode, const char* name) {
    if (arguments.given(option) && image.mode != mode)
      throw ConfigError(fmt::format("--{}: expected --image.mode {} beside it, got {}", option,
                                    name, arguments.text("image.mode")));
  };
  expect_mode("image.compress_probability", data::ImageWriteMode::proportion, "proportion");
  expect_mode("image.smart_threshold", data::ImageWriteMode::smart, "smart");
  image.seed = static_cast<std::uint64_t>(integer(arguments, "seed", 0, INT64_MAX));
  return image;
}

std::string given_image_option(const Arguments& arguments) {
  boost::program_options::options_description options;
  add_image_options(options);
  for (const auto& option : options.options())
    if (arguments.given(option->long_name())) return option->long_name();
  return {};
}

void check_image_options(const Arguments& arguments, const std::vector<data::SourceField>& fields) {
  const std::string given = given_image_option(arguments);
  if (given.empty() || std::ranges::count(fields, "image", &data::SourceField::type) > 0) return;
  std::vector<std::string> kinds;
  for (const data::SourceField& field : fields) kinds.push_back(field.name + "=" + field.type);
  throw ConfigError(fmt::format("--{}: expected a field that is written as an image, got {}", given,
                                fmt::join(kinds, ", ")));
}

}  // namespace precast::tools
