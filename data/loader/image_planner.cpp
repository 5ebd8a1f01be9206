#include "data/loader/image_planner.h"

#include <fmt/core.h>

#include <algorithm>
#include <cstring>
#include <set>
#include <variant>

#include "data/beton/reader.h"
#include "data/loader/stored_pixels.h"
#include "data/resample/kernels.h"
#include "framework/core/error.h"

namespace precast::data {
namespace {

constexpr std::size_t kPlanAlignment = 16;
constexpr std::string_view kKey = "data.in_memory";

/// Calls visit(height, width) for each image of the field that is not damaged. @throws ConfigError
/// naming the first JPEG
template <typename Visit>
void each_size(const BetonReader& reader, std::size_t field, Visit visit) {
  for (std::uint64_t sample = 0; sample < reader.size(); ++sample) {
    if (const std::optional<StoredPixels> image = mapped_pixels(reader, sample, field))
      visit(image->height, image->width);
  }
}

/// @param longest the longest side of the field's images, px. @throws ConfigError if it is too long
/// for the kernel
void check_width(const BetonReader& reader, std::size_t field, int longest) {
  if (longest <= kMaxPlannedWidth) return;
  throw ConfigError(fmt::format(
      "expected images with sides of at most {} px, because data.in_memory is gpu, got {} px "
      "(field '{}')",
      kMaxPlannedWidth, longest, reader.fields()[field].name));
}

void check_plannable(const ImagePipeline& pipeline, std::string_view name,
                     Diagnostics& diagnostics) {
  const auto fail = [&](const std::string& key, const Origin& origin, std::string_view expected,
                        std::string_view got) {
    diagnostics.error(origin, key,
                      fmt::format("expected {} with {}: gpu, got {}", expected, kKey, got));
  };
  for (const PipelineStep& step : pipeline.steps) {
    if (step.transform->is_edit()) continue;
    fail(step.key, step.origin,
         "a transform that shifts or mirrors the image or fills a rectangle, such as translate, "
         "cutout or a flip,",
         "a different transform");
  }
  const Origin none{.source = "pipeline"};
  if (pipeline.steps.size() > ImagePlan::kMaxEdits) {
    fail(pipeline.steps.back().key, pipeline.steps.back().origin,
         fmt::format("at most {} transforms after the crop and the flip", ImagePlan::kMaxEdits),
         fmt::format("{}", pipeline.steps.size()));
  }
  if (pipeline.type) fail(std::string(name), none, "images without `convert`", "`convert`");
  if (pipeline.channels != 3) {
    fail(pipeline.channels_location ? pipeline.channels_location->key : std::string(name),
         pipeline.channels_location ? pipeline.channels_location->origin : none, "3 channels",
         fmt::format("{}", pipeline.channels));
  }
}

template <typename T>
void put(std::byte* table, std::size_t place, T value) {
  std::memcpy(table + place * sizeof(T), &value, sizeof(T));
}

}  // namespace

void plan_images(const BetonReader& reader, std::vector<Output>& outputs) {
  if (!reader.remotes().empty()) {
    throw ConfigError(
        fmt::format("{}: expected local files for the setting gpu, got {} on a server", kKey,
                    reader.path().string()));
  }
  Diagnostics diagnostics;
  for (Output& output : outputs) {
    auto* const image = std::get_if<ImageOutput>(&output.kind);
    if (image == nullptr) continue;
    check_plannable(image->pipeline, output.name, diagnostics);
    int longest = 1;
    try {
      each_size(reader, output.field, [&](int height, int width) {
        longest = std::max({longest, height, width});
      });
      check_width(reader, output.field, longest);
    } catch (const ConfigError& error) {
      diagnostics.error({.source = reader.path().string()}, kKey, error.what());
    }
    image->max_stored_side_px = longest;
  }
  diagnostics.throw_if_errors();
}

std::optional<StoredPixels> mapped_pixels(const BetonReader& reader, std::uint64_t sample,
                                          std::size_t field) {
  const FieldInfo& info = reader.fields()[field];
  if (info.type == FieldType::image) {
    const ImageRecord image = reader.image(sample, field);
    if (image.mode != ImageMode::jpg)
      return StoredPixels{
          .values = image.bytes.data(), .height = image.height, .width = image.width};
    throw ConfigError(
        fmt::format("expected images that are stored as pixels, because data.in_memory is gpu, got "
                    "a JPEG ({}, field "
                    "'{}'). Write the file with --image.mode raw",
                    reader.sample_text(sample), info.name));
  }
  try {
    std::vector<std::uint64_t> extents;
    return stored_pixels(info, reader.blob(sample, field), extents);
  } catch (const DataError&) {
    return std::nullopt;
  }
}

std::set<std::size_t> planned_fields(const std::vector<Output>& outputs) {
  std::set<std::size_t> fields;
  for (const Output& output : outputs) {
    const auto* const image = std::get_if<ImageOutput>(&output.kind);
    if (image != nullptr && image->max_stored_side_px) fields.insert(output.field);
  }
  return fields;
}

std::uint64_t planned_pixel_bytes(const BetonReader& reader, const std::vector<Output>& outputs) {
  std::uint64_t bytes = 0;
  for (const std::size_t field : planned_fields(outputs)) {
    each_size(reader, field, [&](int height, int width) {
      bytes +=
          std::uint64_t{3} * static_cast<std::uint64_t>(height) * static_cast<std::uint64_t>(width);
    });
  }
  return bytes;
}

std::size_t image_plan_bytes(const ImageOutput& image, int side) {
  const int taps = max_taps(image.max_stored_side_px.value(), side, image.pipeline.filter);
  if (taps > ResizePlan::kMaxFixedTaps) {
    const int max_side_px =
        side * (image.pipeline.filter == ResizeFilter::area ? ResizePlan::kMaxFixedTaps - 1
                                                            : (ResizePlan::kMaxFixedTaps - 1) / 2);
    throw ConfigError(
        fmt::format("{}: expected stored images with sides of at most {} px for the setting gpu "
                    "and an image size of {} px, got {} px. Write the file with a smaller "
                    "--image.max_resolution",
                    kKey, max_side_px, side, *image.max_stored_side_px));
  }
  const auto count = static_cast<std::size_t>(taps);
  const std::size_t bytes = tables_of_plan(static_cast<std::size_t>(side), count, count).end;
  return (bytes + kPlanAlignment - 1) / kPlanAlignment * kPlanAlignment;
}

void ImagePlanner::plan(int height, int width, const SampleKey& key, int side, std::byte* out) {
  const Rect region = steps_.region(height, width, key);
  ImagePlan plan{.sample = key.sample,
                 .row = region.row,
                 .column = region.column,
                 .height = region.height,
                 .width = region.width,
                 .side = side};
  plan.edits = steps_.edits({side, side, 3}, key, plan.edit);
  const ResizePlan::Method method =
      resize_.plan(region.height, region.width, side, side, steps_.flipped(key), pipeline_.filter);
  require(method != ResizePlan::Method::convolve_in_float, "the taps of all images were checked");
  if (method == ResizePlan::Method::blend) {
    plan.two_taps = 1;
    plan.column_taps = plan.row_taps = 2;
    write_blends(plan, out);
  } else {
    plan.column_taps = resize_.x_axis.taps;
    plan.row_taps = resize_.y_axis.taps;
    write_weights(plan, out);
  }
  std::memcpy(out, &plan, sizeof plan);
}

void ImagePlanner::write_blends(const ImagePlan& plan, std::byte* out) const {
  const auto side = static_cast<std::size_t>(plan.side);
  const ImagePlanTables tables = tables_of_plan(side, 2, 2);
  for (std::size_t i = 0; i < side; ++i) {
    Blend column = resize_.x_blends[i];
    // If a tap lies outside the crop, blend_columns() uses the edge pixel with the full weight,
    // whereas blend_rows() uses the edge row twice, once with each weight.
    if (column.start < 0 || column.start >= plan.width - 1) {
      column = {std::clamp(column.start, 0, plan.width - 1), kBlendOne, 0};
    }
    const Blend& row = resize_.y_blends[i];
    put<std::int32_t>(out + tables.start_of_columns, i, column.start);
    put<std::int32_t>(out + tables.start_of_rows, i, row.start);
    put(out + tables.column_weights, 2 * i, static_cast<std::uint16_t>(column.first));
    put(out + tables.column_weights, 2 * i + 1, static_cast<std::uint16_t>(column.second));
    put(out + tables.row_weights, 2 * i, static_cast<std::uint16_t>(row.first));
    put(out + tables.row_weights, 2 * i + 1, static_cast<std::uint16_t>(row.second));
    put(out + tables.rounding, i, std::uint16_t{0});
  }
}

void ImagePlanner::write_weights(const ImagePlan& plan, std::byte* out) {
  const auto side = static_cast<std::size_t>(plan.side);
  const auto column_taps = static_cast<std::size_t>(plan.column_taps);
  const auto row_taps = static_cast<std::size_t>(plan.row_taps);
  const ImagePlanTables tables = tables_of_plan(side, column_taps, row_taps);
  weights_.resize(std::max(column_taps, row_taps));
  for (std::size_t i = 0; i < side; ++i) {
    const int output = static_cast<int>(i);
    put<std::int32_t>(out + tables.start_of_columns, i, resize_.x_axis.start[i]);
    put<std::int32_t>(out + tables.start_of_rows, i, resize_.y_axis.start[i]);
    resize_.x_axis.quantize(output, 1 << kColumnWeightBits, weights_.data());
    std::memcpy(out + tables.column_weights + i * column_taps * sizeof(std::uint16_t),
                weights_.data(), column_taps * sizeof(std::uint16_t));
    const int used = resize_.y_axis.quantize(output, 1 << kRowWeightBits, weights_.data());
    std::memcpy(out + tables.row_weights + i * row_taps * sizeof(std::uint16_t), weights_.data(),
                row_taps * sizeof(std::uint16_t));
    put(out + tables.rounding, i, static_cast<std::uint16_t>(used / 2));
  }
}

}  // namespace precast::data
