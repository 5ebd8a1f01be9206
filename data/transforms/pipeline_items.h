#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "data/transforms/image_pipeline.h"
#include "data/transforms/pipeline.h"
#include "framework/core/config/node.h"
#include "framework/core/config/schema.h"

namespace precast::data {

/// One item of a list of transforms: `normalize`, or `normalize: {mean: [..]}`.
struct PipelineItem {
  std::string name;
  ConfigNode options;
  Origin origin;
  /// `pipeline.train[2]`
  std::string key;
};

/// The items of `list`; entries that are not items are reported and left out.
[[nodiscard]] std::vector<PipelineItem> pipeline_items(const ConfigNode& list, std::string_view key,
                                                       Diagnostics& diagnostics);

/// Reads an item's options into `part`, which declares and checks them. @return whether all options
/// are valid.
template <typename Part>
bool read_options(Part& part, const PipelineItem& item, Diagnostics& diagnostics) {
  const std::size_t before = diagnostics.errors().size();
  Schema schema;
  part.options(schema);
  schema.apply(item.options, diagnostics, item.key);
  schema.check_required(item.origin, diagnostics, item.key);
  if (diagnostics.errors().size() == before) {
    const std::string problem = part.problem();
    if (!problem.empty()) diagnostics.error(item.origin, item.key, problem);
  }
  return diagnostics.errors().size() == before;
}

/// Sets ImageNet's mean and std for the image's channels if the recipe gives no numbers; reports
/// numbers that do not fit the channels.
void resolve_normalize(ImagePipeline& image, Diagnostics& diagnostics);

/// Reads the items of one output into `spec`. @param standard the steps that apply if `items` is
/// empty.
void read_items(const std::vector<PipelineItem>& items, const TransformRegistries& registries,
                const ImagePipeline& standard, OutputSpec& spec, Diagnostics& diagnostics);

}  // namespace precast::data
