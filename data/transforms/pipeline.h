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

/// If a recipe names this instead of a field, the output is the sample's index in the dataset file.
inline constexpr std::string_view kSampleId = "sample_id";

/// One tensor of a batch, as a recipe describes it, before it is checked against the dataset's
/// fields.
struct OutputSpec {
  /// The kind of field that the transforms require.
  enum class Content { any, image, number };

  std::string name;
  /// A field of the dataset, or kSampleId.
  std::string field = {};
  Content content = Content::any;
  /// The steps that apply if the field is an image.
  ImagePipeline image = {};
  /// For a mask: the name of its image output, and the value of mask pixels that come from outside
  /// the image.
  std::string geometry_of = {};
  std::uint8_t fill = 0;
  /// The steps that apply if the field is an integer.
  std::vector<std::shared_ptr<const LabelTransform>> labels = {};
  /// For values of varying size: the size to which each is padded, [bytes] or the sides of an
  /// array. If it is empty, the rules in data/transforms/README.md apply.
  std::vector<std::int64_t> pad_to = {};
  /// The type of the step `convert`; empty if there is none.
  std::optional<ElementType> type = {};
  /// For messages: `pipeline.train.view2`, and its location in the recipe.
  std::string key = {};
  Origin origin = {};
};

/// How a dataset's samples become the tensors of a batch. Immutable, shared by all threads.
struct Pipeline {
  Pipeline() = default;
  /// A pipeline without a list of outputs: every image goes through `all_images`.
  Pipeline(ImagePipeline all_images)  // NOLINT(google-explicit-constructor): a list is a pipeline
      : images(std::move(all_images)) {}

  /// The steps for every image if `outputs` is empty.
  ImagePipeline images;
  /// The outputs, in this order. Empty: the fields that resolve_outputs() (loader/outputs.h)
  /// selects, each under its own name.
  std::vector<OutputSpec> outputs;
};

/// Reads `pipeline.train` or `pipeline.val`; data/transforms/README.md describes the syntax. All
/// errors go to `diagnostics`, each with its location.
/// @param key the name for messages: "pipeline.train".
/// @param standard the steps of an image if the list is missing or empty.
[[nodiscard]] PRECAST_API Pipeline parse_pipeline(const ConfigNode& node, std::string_view key,
                                                  const TransformRegistries& registries,
                                                  const ImagePipeline& standard,
                                                  Diagnostics& diagnostics);

/// Sets the number of channels of images where the recipe does not, and ImageNet's mean and std
/// where the recipe gives no numbers. Reports mean and std with a wrong number of values, and
/// images of `inputs` for which the recipe sets a different number of channels.
/// @param channels 1 or 3: what the model reads.
/// @param inputs   names of the outputs that the model reads; empty: the first image.
PRECAST_API void set_channels(Pipeline& pipeline, int channels, std::span<const std::string> inputs,
                              Diagnostics& diagnostics);
/// Like set_channels(), for a program without a model: images for which the pipeline sets no number
/// of channels are RGB.
PRECAST_API void set_default_channels(Pipeline& pipeline, Diagnostics& diagnostics);

/// Reports the transforms that cannot work on images of one of these sizes.
PRECAST_API void check_image_sizes(const Pipeline& pipeline, std::span<const std::int64_t> sizes_px,
                                   Diagnostics& diagnostics);

/// The description of a pipeline item that is neither a crop nor a transform.
struct StageHelp {
  std::string name;
  std::string help;
  /// One line per option.
  std::string options;
};
/// Describes the items resize, channels, convert, normalize and layout.
[[nodiscard]] PRECAST_API std::vector<StageHelp> pipeline_stages();

}  // namespace precast::data
