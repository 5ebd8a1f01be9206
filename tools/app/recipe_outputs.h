#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "data/beton/reader.h"
#include "data/transforms/pipeline.h"
#include "data/transforms/transform.h"
#include "tools/app/train_config.h"

namespace precast::tools {

// These functions determine which outputs of a pipeline the model and the loss read. If a dataset
// lacks an output, this is an error only where stated, because predictions need no labels.

/// Labels that a pipeline outputs.
struct Labels {
  /// Index of the int field in the file.
  std::size_t field = 0;
  /// The transforms of each label, applied in this order.
  std::vector<std::shared_ptr<const data::LabelTransform>> transforms = {};
};

/// Finds the labels among a pipeline's outputs.
/// @param target the name of an output; empty: the first integer output.
/// @return nullopt if there is no such integer output
[[nodiscard]] std::optional<Labels> find_labels(const data::BetonReader& reader,
                                                const data::Pipeline& pipeline,
                                                std::string_view target);
/// The labels that the loss reads: the first of data.targets or, if that is empty, the first
/// integer output.
[[nodiscard]] std::optional<Labels> find_labels(const data::BetonReader& reader,
                                                const data::Pipeline& pipeline,
                                                const TrainConfig& config);
/// The labels that the loss reads, from a dataset that must have labels.
/// @throws DataError if it has none
[[nodiscard]] Labels labels_of_loss(const data::BetonReader& reader, const data::Pipeline& pipeline,
                                    const TrainConfig& config);

/// The names of the classes of the labels that the loss reads; empty if there are no labels, or
/// they have no names.
[[nodiscard]] std::vector<std::string> label_names(const data::BetonReader& reader,
                                                   const data::Pipeline& pipeline,
                                                   const TrainConfig& config);

/// The number of classes: `limit` or, if that is 0, the largest label + 1, after the transforms of
/// labels; without such transforms, at least the number of class names. @throws DataError naming
/// the sample if a label is negative, or not below `limit` (0: kMaxClasses); DataError if the
/// dataset has no labels.
[[nodiscard]] std::int64_t count_classes(const data::BetonReader& reader,
                                         const data::Pipeline& pipeline, const TrainConfig& config,
                                         std::int64_t limit);

/// The first output that the model reads: the first of data.inputs or, if that is empty, the first
/// image. Null if the pipeline does not list it.
/// @param data a dataset with the fields of the pipeline; null: an output without transforms counts
/// as an image only if a mask belongs to it.
[[nodiscard]] const data::OutputSpec* find_input(const data::Pipeline& pipeline,
                                                 const TrainConfig& config,
                                                 const data::BetonReader* data);

/// The transforms of the first output that the model reads; null if that is not an image.
[[nodiscard]] const data::ImagePipeline* find_input_image(const data::Pipeline& pipeline,
                                                          const TrainConfig& config,
                                                          const data::BetonReader& data);

/// Whether the first output that the model reads is an image. @param data null: assumes an image
[[nodiscard]] bool has_image_input(const data::Pipeline& pipeline, const TrainConfig& config,
                                   const data::BetonReader* data);

/// The outputs of a pipeline for predictions: outputs that the model does not read, such as labels,
/// are left out if the dataset does not have their fields. Outputs that the model reads are kept,
/// so that resolve_outputs() reports a missing field.
[[nodiscard]] data::Pipeline prediction_pipeline(const data::Pipeline& pipeline,
                                                 const TrainConfig& config,
                                                 const data::BetonReader& data);

}  // namespace precast::tools
