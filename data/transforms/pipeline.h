#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "data/transforms/image_pipeline.h"
#include "data/transforms/register.h"

namespace precast::data {

/// Instead of a field: the sample's index in the dataset file.
inline constexpr std::string_view kSampleId = "sample_id";

/// One tensor of a batch, as a recipe describes it; the dataset's fields are not known yet.
struct OutputSpec {
  /// What the transforms say that the field is.
  enum class Content { any, image, number };

  std::string name;
  /// A field of the dataset, or kSampleId.
  std::string field = {};
  Content content = Content::any;
  /// What happens to it if it is an image.
  ImagePipeline image = {};
  /// For a mask: the output that it follows, and the value of areas without source pixels.
  std::string geometry_of = {};
  std::uint8_t fill = 0;
  /// What happens to it if it is an integer.
  std::vector<std::shared_ptr<const LabelTransform>> labels = {};
  /// For values of different sizes: what each is padded to, [bytes] or the sides of an array;
  /// empty: see data/README.md.
  std::vector<std::int64_t> pad_to = {};
  /// For numbers and masks: the type that they are converted to.
  std::optional<ElementType> type = {};
  /// For messages: `pipeline.train.view2`, and where that was written.
  std::string key = {};
  Origin origin = {};
};

/// What happens to a dataset's samples. Immutable, shared by all threads.
struct Pipeline {
  Pipeline() = default;
  /// All fields; images go through `all_images`.
  Pipeline(ImagePipeline all_images)  // NOLINT(google-explicit-constructor): a list is a pipeline
      : images(std::move(all_images)) {}

  /// What happens to every image if there are no outputs.
  ImagePipeline images;
  /// Exactly these come out, in this order. Empty: every field under its own name.
  std::vector<OutputSpec> outputs;
};

/// Reads `pipeline.train` or `pipeline.val`; data/transforms/README.md has the grammar. All
/// mistakes go to `diagnostics`, each with its place.
/// @param key the name for messages: "pipeline.train".
/// @param standard what no list, or an empty one, means for an image.
[[nodiscard]] PRECAST_API Pipeline parse_pipeline(const ConfigNode& node, std::string_view key,
                                                  const TransformRegistries& registries,
                                                  const ImagePipeline& standard,
                                                  Diagnostics& diagnostics);

/// Gives images of which the recipe does not say it that number of channels, and those that are not
/// normalised with numbers of the recipe ImageNet's. Reports mean and std with another number of
/// values, and images of `inputs` whose channels the recipe sets to another number.
/// @param channels 1 or 3: what the model reads.
/// @param inputs   names of the outputs that the model reads; empty: the first image.
PRECAST_API void set_channels(Pipeline& pipeline, int channels, std::span<const std::string> inputs,
                              Diagnostics& diagnostics);

/// Reports the transforms that cannot work on images of one of these sizes.
PRECAST_API void check_image_sizes(const Pipeline& pipeline, std::span<const std::int64_t> sizes_px,
                                   Diagnostics& diagnostics);

/// A part of a pipeline that is neither a crop nor a transform, for lists.
struct StageHelp {
  std::string name;
  std::string help;
  /// One line per option.
  std::string options;
};
/// resize, channels, convert, normalize, layout.
[[nodiscard]] PRECAST_API std::vector<StageHelp> pipeline_stages();

}  // namespace precast::data
