#include "data/transforms/pipeline.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <set>

#include "data/transforms/pipeline_items.h"
#include "framework/core/error.h"
#include "framework/core/suggest.h"

namespace precast::data {
namespace {

/// The limit of `pad_to`: larger values do not fit in a page.
constexpr double kMaxPadTo = 1U << 31;
/// The number of channels of images if neither a model nor the pipeline sets it.
constexpr int kRgbChannels = 3;

/// `{field: image, transforms: [..], geometry_of: image, fill: 0, pad_to: [512]}`.
struct OutputOptions {
  std::string field;
  std::string geometry_of = {};
  std::int64_t fill = 0;
  std::vector<double> pad_to = {};
  ConfigNode transforms = {};

  void options(Schema& schema) {
    schema.add("field", &field,
               "a field of the dataset, or sample_id; default: the name of the output");
    schema.add("transforms", &transforms, "list of transforms");
    schema.add("geometry_of", &geometry_of,
               "makes this output a mask: the name of the image output that it belongs to");
    schema.add("fill", &fill, "for a mask: the value of pixels from outside the image")
        .min(0)
        .max(255);
    schema.add("pad_to", &pad_to,
               "for values of different sizes: the size of each dimension after padding");
  }
};

class OutputsReader {
 public:
  OutputsReader(const TransformRegistries& registries, const ImagePipeline& standard,
                Pipeline& pipeline, Diagnostics& diagnostics)
      : registries_(registries),
        standard_(standard),
        pipeline_(pipeline),
        diagnostics_(diagnostics) {}

  void read(const ConfigNode::Entry& entry, std::string_view key) {
    OutputSpec spec{.name = entry.key,
                    .field = entry.key,
                    .image = standard_,
                    .key = fmt::format("{}.{}", key, entry.key),
                    .origin = entry.key_origin};
    const ConfigNode& value = entry.value;
    if (value.kind == ConfigNode::Kind::scalar) {
      spec.field = value.scalar;
    } else if (value.kind == ConfigNode::Kind::map) {
      read_map(value, spec);
    } else {
      read_transforms(value, spec.key, spec);
    }
    if (spec.field == kSampleId && spec.content != OutputSpec::Content::any) {
      diagnostics_.error(spec.origin, spec.key,
                         "expected only convert for sample_id, got other transforms");
    }
    pipeline_.outputs.push_back(std::move(spec));
  }

  /// Checks the references between outputs (`geometry_of`).
  void check() {
    for (const OutputSpec& spec : pipeline_.outputs) {
      if (spec.geometry_of.empty()) continue;
      const auto image = std::ranges::find(pipeline_.outputs, spec.geometry_of, &OutputSpec::name);
      if (image == pipeline_.outputs.end()) {
        std::vector<std::string> names;
        for (const OutputSpec& other : pipeline_.outputs) names.push_back(other.name);
        diagnostics_.error(spec.origin, spec.key + ".geometry_of",
                           fmt::format("unknown output '{}'. {}", spec.geometry_of,
                                       suggest(spec.geometry_of, names)));
      } else if (!image->geometry_of.empty() || image->content == OutputSpec::Content::number ||
                 image->field == kSampleId) {
        diagnostics_.error(
            spec.origin, spec.key + ".geometry_of",
            fmt::format("expected an output with an image, got '{}', which is a mask, a number or "
                        "sample_id",
                        spec.geometry_of));
      } else {
        check_mask_geometry(*image, spec);
      }
    }
  }

 private:
  void check_mask_geometry(const OutputSpec& image, const OutputSpec& mask) {
    for (const PipelineStep& step : image.image.steps) {
      if (!step.transform->blends_moved_copies()) continue;
      diagnostics_.error(mask.origin, mask.key + ".geometry_of",
                         fmt::format("expected an image that can have a mask, got '{}', which {} "
                                     "blends from copies with pixels moved in different ways",
                                     image.name, step.key));
    }
  }

  void read_map(const ConfigNode& map, OutputSpec& spec) {
    OutputOptions options{.field = spec.field};
    Schema schema;
    options.options(schema);
    schema.apply(map, diagnostics_, spec.key);
    spec.field = options.field;
    spec.geometry_of = options.geometry_of;
    spec.fill = static_cast<std::uint8_t>(options.fill);
    for (const double side : options.pad_to) {
      const bool possible = side >= 1 && side <= kMaxPadTo && side == std::floor(side);
      if (possible) spec.pad_to.push_back(static_cast<std::int64_t>(side));
      if (possible) continue;
      diagnostics_.error(
          schema.origin("pad_to"), spec.key + ".pad_to",
          fmt::format("expected whole numbers from 1 to {}, got {}", kMaxPadTo, side));
    }
    if (schema.given("fill") && spec.geometry_of.empty()) {
      diagnostics_.error(schema.origin("fill"), spec.key + ".fill",
                         "expected geometry_of as well, got only fill, which applies to masks");
    }
    read_transforms(options.transforms, spec.key + ".transforms", spec);
  }

  void read_transforms(const ConfigNode& list, const std::string& key, OutputSpec& spec) {
    const auto items = pipeline_items(list, key, diagnostics_);
    if (!spec.geometry_of.empty()) {
      for (const PipelineItem& item : items) {
        if (item.name == "convert") continue;
        diagnostics_.error(item.origin, item.key,
                           fmt::format("expected only convert for a mask, got '{}'. The mask "
                                       "goes through the transforms of '{}' that move pixels",
                                       item.name, spec.geometry_of));
        return;
      }
    }
    read_items(items, registries_, standard_, spec, diagnostics_);
  }

  const TransformRegistries& registries_;
  const ImagePipeline& standard_;
  Pipeline& pipeline_;
  Diagnostics& diagnostics_;
};

/// Whether an output may be an image with channels; numbers and masks have none.
bool has_channels(const OutputSpec& spec) {
  return spec.content != OutputSpec::Content::number && spec.geometry_of.empty();
}

class ChannelSetter {
 public:
  ChannelSetter(int channels, Diagnostics& diagnostics)
      : channels_(channels), diagnostics_(diagnostics) {}

  void set(ImagePipeline& image, bool is_input) {
    if (!image.channels_location) {
      image.channels = channels_;
      resolve_normalize(image, diagnostics_);
    } else if (is_input && image.channels != channels_) {
      diagnostics_.error(
          image.channels_location->origin, image.channels_location->key,
          fmt::format("expected images of {} channel{}, which the model reads, got {}. Leave out "
                      "`channels`, or set model.in_channels: {}",
                      channels_, channels_ == 1 ? "" : "s", image.channels, image.channels));
    }
  }

 private:
  int channels_;
  Diagnostics& diagnostics_;
};

void check_sizes(const ImagePipeline& image, std::span<const std::int64_t> sizes_px,
                 Diagnostics& diagnostics) {
  std::set<const PipelineStep*> reported;
  for (const std::int64_t size_px : sizes_px) {
    PixelShape shape{static_cast<int>(size_px), static_cast<int>(size_px), 3};
    for (const PipelineStep& step : image.steps) {
      try {
        shape = step.transform->output(shape);
      } catch (const ConfigError& error) {
        if (reported.insert(&step).second) diagnostics.error(step.origin, step.key, error.what());
        break;
      }
    }
  }
}

}  // namespace

Pipeline parse_pipeline(const ConfigNode& node, std::string_view key,
                        const TransformRegistries& registries, const ImagePipeline& standard,
                        Diagnostics& diagnostics) {
  Pipeline pipeline(standard);
  if (node.kind != ConfigNode::Kind::map) {
    OutputSpec images;
    read_items(pipeline_items(node, key, diagnostics), registries, standard, images, diagnostics);
    if (images.content == OutputSpec::Content::number) {
      diagnostics.error(
          node.origin, key,
          "expected only image transforms in a list, got a transform for integers. To transform "
          "other fields, write a map of outputs instead");
    }
    // A list with only `convert` does not say that the field is an image.
    if (images.content == OutputSpec::Content::any) images.image.type = images.type;
    pipeline.images = std::move(images.image);
    return pipeline;
  }
  OutputsReader reader(registries, standard, pipeline, diagnostics);
  for (const ConfigNode::Entry& entry : node.entries) reader.read(entry, key);
  reader.check();
  return pipeline;
}

void set_channels(Pipeline& pipeline, int channels, std::span<const std::string> inputs,
                  Diagnostics& diagnostics) {
  ChannelSetter setter(channels, diagnostics);
  if (pipeline.outputs.empty()) setter.set(pipeline.images, /*is_input=*/true);
  bool image_seen = false;
  for (OutputSpec& spec : pipeline.outputs) {
    if (!has_channels(spec)) continue;
    const bool is_image = spec.content == OutputSpec::Content::image;
    const bool is_input = inputs.empty() ? is_image && !image_seen
                                         : std::ranges::find(inputs, spec.name) != inputs.end();
    setter.set(spec.image, is_input);
    image_seen = image_seen || is_image;
  }
}

void set_default_channels(Pipeline& pipeline, Diagnostics& diagnostics) {
  ChannelSetter setter(kRgbChannels, diagnostics);
  setter.set(pipeline.images, /*is_input=*/false);
  for (OutputSpec& spec : pipeline.outputs) {
    if (has_channels(spec)) setter.set(spec.image, /*is_input=*/false);
  }
}

void check_image_sizes(const Pipeline& pipeline, std::span<const std::int64_t> sizes_px,
                       Diagnostics& diagnostics) {
  if (pipeline.outputs.empty()) check_sizes(pipeline.images, sizes_px, diagnostics);
  for (const OutputSpec& spec : pipeline.outputs) check_sizes(spec.image, sizes_px, diagnostics);
}

}  // namespace precast::data
