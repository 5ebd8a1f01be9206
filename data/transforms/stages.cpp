#include "data/transforms/stages.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <cmath>

#include "data/transforms/pipeline.h"

namespace precast::data {
namespace {

constexpr std::array kTypes = {ElementType::u8,   ElementType::f32, ElementType::f16,
                               ElementType::bf16, ElementType::f64, ElementType::i32,
                               ElementType::i64};

template <typename StageOptions>
StageHelp describe(std::string name, std::string help) {
  StageOptions stage;
  Schema schema;
  stage.options(schema);
  return {std::move(name), std::move(help), schema.help("    ")};
}

/// Whether the numbers are probably for pixels in 0..1, as torchvision's and timm's are: none is
/// above 1, and not all are whole, such as the mean 0 and the std 1 that leave pixels unchanged.
bool are_for_pixels_up_to_one(const NormalizeOptions& values) {
  const auto above_one = [](double value) { return value > 1; };
  const auto is_whole = [](double value) { return value == std::floor(value); };
  return std::ranges::none_of(values.mean, above_one) &&
         std::ranges::none_of(values.std, above_one) &&
         !(std::ranges::all_of(values.mean, is_whole) && std::ranges::all_of(values.std, is_whole));
}

/// `mean: [1, 2, 3], std: [4, 5, 6]` with all numbers multiplied by `factor`, without an empty
/// list.
std::string normalize_text(NormalizeOptions values, double factor) {
  std::string text;
  for (auto* const list : {&values.mean, &values.std}) {
    if (list->empty()) continue;
    for (double& value : *list) value *= factor;
    text += fmt::format("{}{}: [{:.6g}]", text.empty() ? "" : ", ",
                        list == &values.mean ? "mean" : "std", fmt::join(*list, ", "));
  }
  return text;
}

}  // namespace

void FlipStage::options(Schema& schema) {
  schema.add("probability", &probability, "probability that an image is mirrored").min(0).max(1);
}

void ResizeStage::options(Schema& schema) {
  schema
      .add("filter", &filter_name,
           "area, as in FFCV; bilinear; or antialias, as in torchvision and PIL")
      .choices({"area", "bilinear", "antialias"});
}

ResizeFilter ResizeStage::filter() const {
  if (filter_name == "bilinear") return ResizeFilter::bilinear;
  return filter_name == "antialias" ? ResizeFilter::antialias : ResizeFilter::area;
}

void ConvertStage::options(Schema& schema) {
  std::vector<std::string> names;
  for (const ElementType known : kTypes) names.emplace_back(element_type_name(known));
  schema
      .add("type", &type_name,
           "images: u8, f32, f16, bf16; numbers: i32, i64, f32, f64; masks: as for numbers, or u8")
      .choices(std::move(names))
      .required();
}

std::string ConvertStage::problem() {
  const auto* const found = std::ranges::find(kTypes, type_name, element_type_name);
  if (found != kTypes.end()) type = *found;
  return {};
}

bool ConvertStage::fits_images() const {
  return type == ElementType::u8 || type == ElementType::f32 || type == ElementType::f16 ||
         type == ElementType::bf16;
}

void NormalizeStage::options(Schema& schema) {
  schema.add("mean", &values.mean,
             "one number per channel, for pixels in 0..255; default: ImageNet's");
  schema.add("std", &values.std,
             "one number above 0 per channel, for pixels in 0..255; default: ImageNet's");
}

std::string NormalizeStage::problem() {
  const auto positive = [](double value) { return value > 0; };
  const std::size_t count = std::max(values.mean.size(), values.std.size());
  const NormalizeOptions given = values;
  const NormalizeOptions standard = count == 1 ? NormalizeOptions::of_luma() : NormalizeOptions();
  if (count > 0 && values.mean.empty()) values.mean = standard.mean;
  if (count > 0 && values.std.empty()) values.std = standard.std;
  const bool valid = (count == 0 || count == 1 || count == 3) && values.mean.size() == count &&
                     values.std.size() == count && std::ranges::all_of(values.std, positive);
  if (valid && are_for_pixels_up_to_one(given)) {
    return fmt::format(
        "expected numbers for pixels in 0..255, got {{{}}}, which are for pixels in 0..1. Multiply "
        "them by 255: normalize: {{{}}}",
        normalize_text(given, 1), normalize_text(given, 255));
  }
  if (valid) return {};
  return fmt::format(
      "expected mean and std with one or three numbers each, std above 0, got mean [{}], std [{}]",
      fmt::join(values.mean, ", "), fmt::join(values.std, ", "));
}

void ChannelsStage::options(Schema& schema) {
  schema.add("count", &count, "3: RGB; 1: luma (for a JPEG, its Y plane)").required();
}

std::string ChannelsStage::problem() const {
  return count == 1 || count == 3 ? "" : fmt::format("count: expected 1 or 3, got {}", count);
}

void LayoutStage::options(Schema& schema) {
  schema.add("order", &order, "nhwc (channels_last) or nchw (planar)").choices({"nhwc", "nchw"});
}

std::vector<StageHelp> pipeline_stages() {
  return {describe<ResizeStage>("resize", "how the crop is resized to the image size"),
          describe<ChannelsStage>("channels", "colour or grey; default: as in model.in_channels"),
          describe<ConvertStage>("convert", "element type of the output"),
          describe<NormalizeStage>("normalize", "(pixel - mean) / std"),
          describe<LayoutStage>("layout", "order of the pixels in memory")};
}

}  // namespace precast::data
