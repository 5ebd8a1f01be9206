#include "data/transforms/image_pipeline.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <string>
#include <utility>

#include "data/transforms/center_crop.h"
#include "data/transforms/random_resized_crop.h"
#include "data/transforms/whole_image.h"
#include "framework/core/suggest.h"

namespace precast::data {
namespace {

enum class Stage { crop, flip, normalize };

/// One item of the list: `normalize`, or `normalize: {mean: [..]}`.
struct Item {
  std::string name;
  ConfigNode options;
  Origin origin;
  std::string key;
};

class PipelineParser {
 public:
  PipelineParser(const CropRegistry& crops, ImagePipeline& pipeline, Diagnostics& diagnostics)
      : crops_(crops), pipeline_(pipeline), diagnostics_(diagnostics) {}

  void parse(const Item& item) {
    if (crops_.contains(item.name)) {
      if (enter(item, Stage::crop)) parse_crop(item);
    } else if (item.name == "horizontal_flip") {
      if (enter(item, Stage::flip)) parse_flip(item);
    } else if (item.name == "normalize") {
      if (enter(item, Stage::normalize)) parse_normalize(item);
    } else {
      std::vector<std::string> known = crops_.names();
      known.insert(known.end(), {"horizontal_flip", "normalize"});
      diagnostics_.error(
          item.origin, item.key,
          fmt::format("unknown transform '{}'. {}", item.name, suggest(item.name, known)));
    }
  }

 private:
  /// The loader fuses the stages, so each may come once, in order.
  bool enter(const Item& item, Stage stage) {
    if (!seen_.empty() && seen_.back() >= stage) {
      diagnostics_.error(item.origin, item.key,
                         fmt::format("'{}' is out of order. Expected at most one crop, then "
                                     "horizontal_flip, then normalize",
                                     item.name));
      return false;
    }
    seen_.push_back(stage);
    return true;
  }

  void parse_crop(const Item& item) {
    std::shared_ptr<Crop> crop = crops_.create(item.name);
    Schema schema;
    crop->options(schema);
    schema.apply(item.options, diagnostics_, item.key);
    const std::string problem = crop->problem();
    if (!problem.empty()) diagnostics_.error(item.origin, item.key, problem);
    pipeline_.crop = std::move(crop);
  }

  void parse_flip(const Item& item) {
    pipeline_.flip_probability = 0.5;
    Schema schema;
    schema.add("probability", &pipeline_.flip_probability, "share of images mirrored")
        .min(0)
        .max(1);
    schema.apply(item.options, diagnostics_, item.key);
  }

  void parse_normalize(const Item& item) {
    Schema schema;
    schema.add("mean", &pipeline_.normalize.mean, "three numbers, pixels being 0..255");
    schema.add("std", &pipeline_.normalize.std, "three numbers above 0, pixels being 0..255");
    schema.apply(item.options, diagnostics_, item.key);
    const auto positive = [](double value) { return value > 0; };
    if (pipeline_.normalize.mean.size() != 3 || pipeline_.normalize.std.size() != 3 ||
        !std::ranges::all_of(pipeline_.normalize.std, positive)) {
      diagnostics_.error(item.origin, item.key,
                         "expected mean and std with three numbers each, std above 0");
    }
  }

  const CropRegistry& crops_;
  ImagePipeline& pipeline_;
  Diagnostics& diagnostics_;
  std::vector<Stage> seen_;
};

}  // namespace

void register_crops(CropRegistry& registry) {
  registry.add("random_resized_crop", "random area and aspect ratio (training)",
               [] { return std::make_unique<RandomResizedCrop>(); });
  registry.add("center_crop", "centred square (evaluation)",
               [] { return std::make_unique<CenterCrop>(); });
  registry.add("whole_image", "no crop", [] { return std::make_unique<WholeImage>(); });
}

ImagePipeline parse_image_pipeline(const ConfigNode& list, std::string_view key,
                                   const CropRegistry& crops, ImagePipeline standard,
                                   Diagnostics& diagnostics) {
  if (list.kind == ConfigNode::Kind::null ||
      (list.kind == ConfigNode::Kind::list && list.items.empty())) {
    return standard;
  }
  if (list.kind != ConfigNode::Kind::list) {
    diagnostics.error(list.origin, key,
                      fmt::format("expected a list of transforms, got {}", list.text()));
    return standard;
  }
  ImagePipeline pipeline = std::move(standard);
  pipeline.crop = std::make_shared<WholeImage>();
  pipeline.flip_probability = 0;
  PipelineParser parser(crops, pipeline, diagnostics);
  for (std::size_t i = 0; i < list.items.size(); ++i) {
    const ConfigNode& node = list.items[i];
    Item item{.name = node.scalar,
              .options = {},
              .origin = node.origin,
              .key = fmt::format("{}[{}]", key, i)};
    if (node.kind == ConfigNode::Kind::map && node.entries.size() == 1) {
      item.name = node.entries[0].key;
      item.options = node.entries[0].value;
    } else if (node.kind != ConfigNode::Kind::scalar) {
      diagnostics.error(node.origin, item.key,
                        fmt::format("expected a name or `name: {{options}}`, got {}", node.text()));
      continue;
    }
    parser.parse(item);
  }
  return pipeline;
}

ImagePipeline standard_train_pipeline() {
  return {.crop = std::make_shared<RandomResizedCrop>(), .flip_probability = 0.5, .normalize = {}};
}

ImagePipeline standard_val_pipeline() {
  return {.crop = std::make_shared<CenterCrop>(), .flip_probability = 0, .normalize = {}};
}

}  // namespace precast::data
