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

/// The items of `list`; what is not an item is reported and left out.
[[nodiscard]] std::vector<PipelineItem> pipeline_items(const ConfigNode& list, std::string_view key,
                                                       Diagnostics& diagnostics);

/// Reads an item's options into `part`, which declares and checks them. @return whether all is
/// well.
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

/// Gives an image that the recipe does not normalise with numbers ImageNet's for its channels;
/// reports numbers that do not fit these.
void fit_normalize(ImagePipeline& image, Diagnostics& diagnostics);

/// Reads the items of one output into `spec`. @param standard what no item means.
void read_items(const std::vector<PipelineItem>& items, const TransformRegistries& registries,
                const ImagePipeline& standard, OutputSpec& spec, Diagnostics& diagnostics);

}  // namespace precast::data
