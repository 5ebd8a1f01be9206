#include "tools/app/data_description.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "data/beton/file_info.h"
#include "framework/core/format.h"
#include "tools/app/normalization.h"

namespace precast::tools {
namespace {

using nlohmann::ordered_json;

/// The smallest, mean and largest width or height of images, in pixels.
struct Sides {
  int min = 65536;
  int max = 0;
  double sum = 0;

  void add(int side) {
    min = std::min(min, side);
    max = std::max(max, side);
    sum += side;
  }
  [[nodiscard]] ordered_json json(std::uint64_t count) const {
    return {{"min", min}, {"mean", sum / static_cast<double>(count)}, {"max", max}};
  }
};

ordered_json describe_classes(const data::BetonReader& reader) {
  auto classes = ordered_json::object();
  for (std::size_t i = 0; i < reader.fields().size(); ++i) {
    if (reader.fields()[i].type != data::FieldType::integer) continue;
    const auto names = data::class_names_of(reader, i);
    if (!names.empty()) classes[reader.fields()[i].name] = names;
  }
  return classes;
}

std::string side_text(const ordered_json& side) {
  const int min = side.at("min");
  const int max = side.at("max");
  return min == max ? fmt::to_string(min)
                    : fmt::format("{} to {}, mean {:.0f}", min, max, side.at("mean").get<double>());
}

std::string number_list(const ordered_json& numbers) {
  std::vector<std::string> texts;
  for (const double number : numbers) texts.push_back(fmt::format("{:.4g}", number));
  return fmt::format("{}", fmt::join(texts, ", "));
}

}  // namespace

std::string file_text(const ordered_json& file) {
  if (file.is_string()) return file;
  return fmt::format("{}", fmt::join(file.get<std::vector<std::string>>(), ", "));
}

ordered_json dataset_summary(const data::BetonReader& reader) {
  std::vector<std::string> files;
  for (const data::BetonReader& file : reader.files()) files.push_back(file.path().string());
  ordered_json report = {{"file", files.size() == 1 ? ordered_json(files[0]) : ordered_json(files)},
                         {"samples", reader.size()},
                         {"bytes", reader.file_bytes()},
                         {"class_names", describe_classes(reader)}};
  const std::size_t image = reader.first_field(data::FieldType::image);
  if (image == reader.fields().size()) return report;
  Sides width, height;
  for (std::uint64_t i = 0; i < reader.size(); ++i) {
    const data::BetonReader::ImageSize size = reader.image_size(i, image);
    width.add(size.width);
    height.add(size.height);
  }
  report["image_px"] = {{"width", width.json(reader.size())},
                        {"height", height.json(reader.size())}};
  return report;
}

bool has_jpegs(const data::BetonReader& reader) {
  for (std::size_t field = 0; field < reader.fields().size(); ++field) {
    if (reader.fields()[field].type != data::FieldType::image) continue;
    for (std::uint64_t i = 0; i < reader.size(); ++i)
      if (reader.image_mode(i, field) == data::ImageMode::jpg) return true;
  }
  return false;
}

ordered_json pipeline_summary(const data::Pipeline& pipeline, const ordered_json& written,
                              bool train) {
  ordered_json steps = written;
  if (steps.is_null() || steps.empty()) {
    steps = train ? ordered_json::array({"random_resized_crop", "horizontal_flip"})
                  : ordered_json::array({{{"center_crop", {{"ratio", 0.875}}}}});
  }
  const data::ImagePipeline* image = &pipeline.images;
  for (const data::OutputSpec& output : pipeline.outputs) {
    if (output.content == data::OutputSpec::Content::image && output.geometry_of.empty()) {
      image = &output.image;
      break;
    }
  }
  ordered_json summary = {{"steps", steps}};
  const data::NormalizeOptions normalization = normalization_of(*image);
  if (normalization.mean.empty()) return summary;
  summary["mean"] = normalization.mean;
  summary["std"] = normalization.std;
  return summary;
}

void print_dataset(const std::string& name, const ordered_json& dataset) {
  std::string text =
      fmt::format("{}, {} samples, {}", file_text(dataset.at("file")), dataset.at("samples").dump(),
                  format_bytes(dataset.at("bytes").get<double>()));
  if (dataset.contains("image_px")) {
    const ordered_json& sides = dataset.at("image_px");
    text += fmt::format(", images {} wide, {} high (px)", side_text(sides.at("width")),
                        side_text(sides.at("height")));
  }
  fmt::print("{:<12}{}\n", name, text);
}

void print_pipeline(const std::string& name, const ordered_json& pipeline) {
  const std::string normalization =
      pipeline.contains("mean") ? fmt::format("mean {}, std {}", number_list(pipeline.at("mean")),
                                              number_list(pipeline.at("std")))
                                : "pixels are not normalised";
  fmt::print("{:<11} {}; {}\n", name, pipeline.at("steps").dump(), normalization);
}

}  // namespace precast::tools
