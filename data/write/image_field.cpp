#include "data/write/image_field.h"

#include <fmt/core.h>

#include <algorithm>
#include <utility>

#include "framework/core/error.h"
#include "framework/core/rng.h"

namespace precast::data {
namespace {

const std::vector<std::pair<std::string, ImageWriteMode>>& modes() {
  static const std::vector<std::pair<std::string, ImageWriteMode>> all = {
      {"raw", ImageWriteMode::raw},
      {"jpg", ImageWriteMode::jpg},
      {"smart", ImageWriteMode::smart},
      {"proportion", ImageWriteMode::proportion},
      {"keep", ImageWriteMode::keep}};
  return all;
}

const std::string& name_of(ImageWriteMode mode) {
  return std::ranges::find(modes(), mode, &std::pair<std::string, ImageWriteMode>::second)->first;
}

void check(const ImageFieldOptions& options) {
  if (options.jpeg_quality < 1 || options.jpeg_quality > 100) {
    throw ConfigError(
        fmt::format("image.quality: expected 1 to 100, got {}", options.jpeg_quality));
  }
  if (options.max_resolution_px < 0) {
    throw ConfigError(
        fmt::format("image.max_resolution: expected a number of pixels, or 0 for no limit, got {}",
                    options.max_resolution_px));
  }
  // Written so that NaN is also rejected.
  if (!(options.compress_probability >= 0 && options.compress_probability <= 1)) {
    throw ConfigError(fmt::format("image.compress_probability: expected 0 to 1, got {}",
                                  options.compress_probability));
  }
  if (options.mode == ImageWriteMode::smart && options.smart_threshold_bytes == 0) {
    throw ConfigError(
        "image.smart_threshold: expected a number of bytes (height x width x 3) above which mode "
        "smart stores a JPEG, got none");
  }
}

void copy_pixels(const ImageView& image, std::vector<std::byte>& out) {
  const auto row_bytes = static_cast<std::size_t>(image.width) * 3;
  out.resize(row_bytes * static_cast<std::size_t>(image.height));
  for (int y = 0; y < image.height; ++y) {
    std::memcpy(out.data() + static_cast<std::size_t>(y) * row_bytes, image.row(y), row_bytes);
  }
}

/// Writes the metadata except the pointer.
void describe(ImageMode mode, const ImageView& image, EncodedValue& out) {
  out.metadata.assign(kImageMetadataBytes, std::byte{0});
  out.metadata[0] = static_cast<std::byte>(mode);
  store(out.metadata.data() + kImageWidthAt, static_cast<std::uint16_t>(image.width));
  store(out.metadata.data() + kImageHeightAt, static_cast<std::uint16_t>(image.height));
}

}  // namespace

void ImageFieldOptions::options(Schema& schema) {
  schema.add("mode", &mode, modes(),
             "how images are stored; raw: pixels; jpg: JPEG; smart: JPEG above smart_threshold; "
             "proportion: a random part as JPEG; keep: JPEGs as JPEG, all others as pixels");
  schema
      .add("max_resolution", &max_resolution_px,
           "reduce larger images so that the longer side has this many pixels; 0: never")
      .min(0)
      .max(kMaxSidePx);
  schema.add("quality", &jpeg_quality, "JPEG quality").min(1).max(100);
  schema
      .add("compress_probability", &compress_probability,
           "fraction of images stored as JPEG; with mode proportion")
      .min(0)
      .max(1);
  schema
      .add("smart_threshold", &smart_threshold_bytes,
           "size in bytes (height x width x 3) above which an image is stored as JPEG; required "
           "with mode smart")
      .min(0);
  schema.add("passthrough", &passthrough,
             "keep the bytes of grey and YCbCr JPEGs that need no resize and decode without a "
             "warning");
}

void ImageFieldOptions::check(const Schema& schema, std::string_view where,
                              Diagnostics& diagnostics) const {
  const auto report_unused = [&](const char* option, std::string_view needed) {
    diagnostics.error(
        schema.origin(option), fmt::format("{}.{}", where, option),
        fmt::format("expected {}.mode {} as well, got mode {}, in which this option has no effect",
                    where, needed, name_of(mode)));
  };
  if (mode != ImageWriteMode::proportion && schema.given("compress_probability"))
    report_unused("compress_probability", "proportion");
  if (mode != ImageWriteMode::smart && schema.given("smart_threshold"))
    report_unused("smart_threshold", "smart");
  if (mode != ImageWriteMode::raw) return;
  if (schema.given("quality")) report_unused("quality", "jpg, smart, proportion or keep");
  if (passthrough) report_unused("passthrough", "jpg, smart, proportion or keep");
}

ImageField::ImageField(const ImageFieldOptions& options) : options_(options) {
  check(options_);
}

bool ImageField::stores_jpeg(const ImageView& image, std::uint64_t sample, bool was_jpeg) const {
  switch (options_.mode) {
    case ImageWriteMode::raw:
      return false;
    case ImageWriteMode::jpg:
      return true;
    case ImageWriteMode::smart:
      return std::uint64_t{3} * static_cast<std::uint64_t>(image.width) *
                 static_cast<std::uint64_t>(image.height) >
             static_cast<std::uint64_t>(options_.smart_threshold_bytes);
    case ImageWriteMode::keep:
      return was_jpeg;
    case ImageWriteMode::proportion:
      break;
  }
  return RandomStream(options_.seed, 0, sample, RandomUse::write_mode).uniform() <
         options_.compress_probability;
}

bool ImageField::fits(int width, int height) const {
  return options_.max_resolution_px == 0 || std::max(width, height) <= options_.max_resolution_px;
}

ImageView ImageField::fit(const ImageView& image) {
  if (fits(image.width, image.height)) return image;
  const int longer = std::max(image.width, image.height);
  // Computed in doubles and truncated, as in FFCV. A side of 0, with which FFCV fails, becomes 1.
  const double ratio = static_cast<double>(options_.max_resolution_px) / longer;
  const int width = std::max(1, static_cast<int>(ratio * image.width));
  const int height = std::max(1, static_cast<int>(ratio * image.height));
  resized_.height = height;
  resized_.width = width;
  resized_.pixels.resize(static_cast<std::size_t>(width) * static_cast<std::size_t>(height) * 3);
  resizer_.resize(image, height, width, ResizeFilter::area, resized_.pixels.data());
  count("resized");
  return resized_.view();
}

void ImageField::count_facts(const ImageFileFacts& facts, ImageFormat implied_format) {
  if (facts.format == ImageFormat::png) count("png");
  if (facts.format == ImageFormat::webp) count("webp");
  if (facts.grey) count("grey");
  if (facts.cmyk) count("cmyk");
  if (facts.alpha) count("alpha_dropped");
  if (facts.sixteen_bit) count("sixteen_bit");
  if (facts.orientation > 1) count("exif_rotated");
  if (facts.warnings > 0) count("jpeg_warnings");
  if (implied_format != ImageFormat::unknown && implied_format != facts.format)
    count("mislabelled");
}

bool ImageField::keep(const ImageInput& input, std::uint64_t sample, EncodedValue& out) {
  if (!options_.passthrough || image_format(input.file) != ImageFormat::jpeg) return false;
  const auto [facts, height, width] = read_jpeg_header(input.file);
  const ImageView size{.height = height, .width = width};
  if (!facts.plain_jpeg || facts.several_scans || facts.warnings > 0 || !fits(width, height) ||
      !stores_jpeg(size, sample, /*was_jpeg=*/true) ||
      !loader_decoder_.is_intact(input.file, height, width))
    return false;
  count_facts(facts, input.implied_format);
  out.blob.assign(input.file.begin(), input.file.end());
  count("kept_jpeg");
  count("jpg");
  describe(ImageMode::jpg, size, out);
  return true;
}

bool ImageField::decode(const ImageInput& input) {
  const ImageFileFacts facts = decode_image_file(input.file, decoded_);
  count_facts(facts, input.implied_format);
  if (!options_.passthrough || !facts.plain_jpeg || facts.warnings > 0) return false;
  if (!facts.several_scans) return true;
  try {
    (void)loader_decoder_.decode(input.file, decoded_.height, decoded_.width, {0, 0, 1, 1});
    return true;
  } catch (const DataError&) {
    return false;
  }
}

void ImageField::encode(const Value& value, std::uint64_t sample, EncodedValue& out) {
  const auto* input = std::get_if<ImageInput>(&value);
  if (input == nullptr)
    throw DataError("image field: expected an image, got a value of another type");
  if (keep(*input, sample, out)) return;
  const bool can_keep_file = !input->file.empty() && decode(*input);
  const ImageView given = input->file.empty() ? input->pixels.view() : decoded_.view();
  if (given.width < 1 || given.height < 1) {
    throw DataError(fmt::format(
        "image field: expected an image of at least 1 x 1 px, got {} x {} px (or an empty file)",
        given.width, given.height));
  }
  const ImageView image = fit(given);
  if (image.width > kMaxSidePx || image.height > kMaxSidePx) {
    throw DataError(
        fmt::format("image field: expected sides of at most {} px, got {} x {}. Set "
                    "image.max_resolution",
                    kMaxSidePx, image.width, image.height));
  }
  const bool was_jpeg = image_format(input->file) == ImageFormat::jpeg;
  const bool jpeg = stores_jpeg(image, sample, was_jpeg);
  if (!jpeg) {
    copy_pixels(image, out.blob);
  } else if (can_keep_file && image.pixels == given.pixels) {
    out.blob.assign(input->file.begin(), input->file.end());
    count("kept_jpeg");
  } else {
    encoder_.encode(image, static_cast<int>(options_.jpeg_quality), out.blob);
  }
  count(jpeg ? "jpg" : "raw");
  describe(jpeg ? ImageMode::jpg : ImageMode::raw, image, out);
}

}  // namespace precast::data
