#include "tools/app/recipe_outputs.h"

#include <fmt/format.h>

#include <algorithm>

#include "data/beton/file_info.h"
#include "framework/core/error.h"

namespace precast::tools {
namespace {

using data::OutputSpec;

bool contains(const std::vector<std::string>& names, const std::string& name) {
  return std::ranges::find(names, name) != names.end();
}

/// The index of the field; the number of fields if there is none.
std::size_t find_field(const data::BetonReader& reader, const std::string& name) {
  const auto& fields = reader.fields();
  return static_cast<std::size_t>(std::ranges::find(fields, name, &data::FieldInfo::name) -
                                  fields.begin());
}

bool has_field(const data::BetonReader& reader, const OutputSpec& output) {
  return output.field == data::kSampleId ||
         find_field(reader, output.field) < reader.fields().size();
}

/// @param data null: the dataset is not known
bool is_image(const OutputSpec& output, const data::Pipeline& pipeline,
              const data::BetonReader* data) {
  if (!output.geometry_of.empty() || output.content == OutputSpec::Content::number ||
      output.field == data::kSampleId)
    return false;
  if (output.content == OutputSpec::Content::image ||
      std::ranges::find(pipeline.outputs, output.name, &OutputSpec::geometry_of) !=
          pipeline.outputs.end())
    return true;
  if (data == nullptr || !has_field(*data, output)) return false;
  return data->fields()[find_field(*data, output.field)].type == data::FieldType::image;
}

}  // namespace

std::optional<Labels> find_labels(const data::BetonReader& reader, const data::Pipeline& pipeline,
                                  std::string_view target) {
  const auto& fields = reader.fields();
  const auto is_label = [&](const std::string& output, std::size_t field) {
    return (target.empty() || output == target) && field < fields.size() &&
           fields[field].type == data::FieldType::integer;
  };
  for (const OutputSpec& output : pipeline.outputs) {
    if (output.field == data::kSampleId) continue;
    const std::size_t field = find_field(reader, output.field);
    if (is_label(output.name, field)) return Labels{.field = field, .transforms = output.labels};
  }
  if (!pipeline.outputs.empty()) return std::nullopt;
  // Each field is then an output of the same name.
  for (std::size_t field = 0; field < fields.size(); ++field)
    if (is_label(fields[field].name, field)) return Labels{.field = field};
  return std::nullopt;
}

std::optional<Labels> find_labels(const data::BetonReader& reader, const data::Pipeline& pipeline,
                                  const TrainConfig& config) {
  const std::vector<std::string>& targets = config.data.targets;
  return find_labels(reader, pipeline, targets.empty() ? std::string_view() : targets.front());
}

Labels labels_of_loss(const data::BetonReader& reader, const data::Pipeline& pipeline,
                      const TrainConfig& config) {
  if (auto labels = find_labels(reader, pipeline, config)) return *std::move(labels);
  throw DataError(
      fmt::format("{}: expected an integer field with labels, got none", reader.path().string()));
}

std::vector<std::string> label_names(const data::BetonReader& reader,
                                     const data::Pipeline& pipeline, const TrainConfig& config) {
  const auto labels = find_labels(reader, pipeline, config);
  return labels ? data::class_names_of(reader, labels->field) : std::vector<std::string>();
}

std::int64_t count_classes(const data::BetonReader& reader, const data::Pipeline& pipeline,
                           const TrainConfig& config, std::int64_t limit) {
  const Labels labels = labels_of_loss(reader, pipeline, config);
  const std::int64_t bound = limit > 0 ? limit : kMaxClasses;
  std::int64_t classes = 0;
  for (std::uint64_t sample = 0; sample < reader.size(); ++sample) {
    const std::int64_t stored = reader.integer(sample, labels.field);
    std::int64_t label = stored;
    for (const auto& transform : labels.transforms) label = transform->apply(label, sample);
    if (label < 0 || label >= bound) {
      throw DataError(fmt::format(
          "{}: expected a label in [0, {}), got {}{}", reader.sample_text(sample), bound, label,
          label == stored ? "" : fmt::format(" ({} before the label transforms)", stored)));
    }
    classes = std::max(classes, label + 1);
  }
  if (limit > 0) return limit;
  // A class may have a name, but no samples. Transforms may change the meaning of labels.
  const std::size_t named =
      labels.transforms.empty() ? data::class_names_of(reader, labels.field).size() : 0;
  return std::max(classes, static_cast<std::int64_t>(named));
}

const OutputSpec* find_input(const data::Pipeline& pipeline, const TrainConfig& config,
                             const data::BetonReader* data) {
  const std::vector<std::string>& inputs = config.data.inputs;
  const auto input = std::ranges::find_if(pipeline.outputs, [&](const OutputSpec& output) {
    return inputs.empty() ? is_image(output, pipeline, data) : output.name == inputs.front();
  });
  return input == pipeline.outputs.end() ? nullptr : &*input;
}

const data::ImagePipeline* find_input_image(const data::Pipeline& pipeline,
                                            const TrainConfig& config,
                                            const data::BetonReader& data) {
  if (pipeline.outputs.empty()) {
    // Each field is then an output of the same name.
    const std::vector<std::string>& inputs = config.data.inputs;
    const std::size_t field = inputs.empty() ? data.first_field(data::FieldType::image)
                                             : find_field(data, inputs.front());
    const bool found =
        field < data.fields().size() && data.fields()[field].type == data::FieldType::image;
    return found ? &pipeline.images : nullptr;
  }
  const OutputSpec* const input = find_input(pipeline, config, &data);
  return input != nullptr && is_image(*input, pipeline, &data) ? &input->image : nullptr;
}

bool has_image_input(const data::Pipeline& pipeline, const TrainConfig& config,
                     const data::BetonReader* data) {
  return data == nullptr || find_input_image(pipeline, config, *data) != nullptr;
}

data::Pipeline prediction_pipeline(const data::Pipeline& pipeline, const TrainConfig& config,
                                   const data::BetonReader& data) {
  const OutputSpec* const input = find_input(pipeline, config, &data);
  const auto is_available = [&](const OutputSpec& output) {
    return &output == input || contains(config.data.inputs, output.name) || has_field(data, output);
  };
  data::Pipeline available(pipeline.images);
  for (const OutputSpec& output : pipeline.outputs) {
    const auto image = std::ranges::find(pipeline.outputs, output.geometry_of, &OutputSpec::name);
    if (is_available(output) && (image == pipeline.outputs.end() || is_available(*image)))
      available.outputs.push_back(output);
  }
  // If only targets are left, a model without data.inputs would read a target. With the whole
  // pipeline, resolve_outputs() reports the missing field instead.
  const bool only_targets = std::ranges::all_of(available.outputs, [&](const OutputSpec& output) {
    return contains(config.data.targets, output.name);
  });
  return input == nullptr && only_targets ? pipeline : available;
}

}  // namespace precast::tools
