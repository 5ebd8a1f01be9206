#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <memory>
#include <vector>

#include "data/beton/reader.h"
#include "data/loader/outputs.h"
#include "data/outside/outside_batches.h"
#include "data/outside/tensor_spec.h"
#include "data/torch/batch_source.h"
#include "data/transforms/pipeline.h"
#include "framework/api/batch_source.h"
#include "framework/core/export.h"

namespace precast::data {

/// What a run expects of batches from another program.
struct OutsideSpec {
  /// The outputs that the model and the loss read; other outputs of a batch are ignored. An image
  /// for which the pipeline sets no element type may be |u1 or normalised <f4, [N, H, W, C].
  std::vector<Output> outputs;
  /// Indices into `outputs`, as Batch::inputs and Batch::targets.
  std::vector<std::size_t> inputs;
  std::vector<std::size_t> targets;
  std::int64_t batch_size = 0;
  /// Number of batches in one pass.
  std::int64_t batches = 0;
  /// If `classes.count` is above 0, the first target contains labels or masks of an integer type,
  /// and their values must be these classes.
  ClassRange classes = {};
  /// Whether batches with epoch and batch numbers must have the numbers that the pass needs. False
  /// for measurements.
  bool checks_positions = true;
  /// Whether a run that does not start at its first batch accepts batches without numbers.
  bool accepts_unnumbered = false;
};

/// Returns a spec with the inputs and targets that `choice` selects from the outputs of `pipeline`
/// for the file. The caller sets all other members. @throws DataError and ConfigError in the same
/// cases as make_batch_source()
[[nodiscard]] PRECAST_API OutsideSpec make_outside_spec(const BetonReader& reader,
                                                        const Pipeline& pipeline,
                                                        const FieldChoice& choice);
/// Returns a spec with an image called `image`, normalised with ImageNet's values, and an integer
/// called `label`.
[[nodiscard]] PRECAST_API OutsideSpec make_image_spec(int channels);

/// Returns the largest accepted size of a message with a batch, in bytes: four times the size of
/// the batch, since images may be float32 instead of uint8, plus 1 MiB.
[[nodiscard]] PRECAST_API std::uint64_t max_outside_message_bytes(const OutsideSpec& spec,
                                                                  std::int64_t image_size_px);

/// Creates a source of batches that another program makes, for a run of one rank. Each batch is
/// checked, and u8 images are normalised. The source begins to receive at the first begin_epoch();
/// passes must be in increasing order, since a batch cannot be received twice. If a pass is left
/// before its end, the rest of its batches is skipped, provided that they have numbers.
/// next() throws ProducerError for a batch that does not match `spec` or is not the next one, and
/// CheckpointError for batches without numbers in a run that does not start at its first batch
/// (unless spec.accepts_unnumbered is true). begin_epoch() throws ProducerError for a pass before
/// the next batch, and in the first call the exceptions of OutsideBatches::begin(). If the process
/// is asked to stop while next() waits, next() returns nothing, even before the end of the pass.
/// @param image_dtype as in make_batch_source()
[[nodiscard]] PRECAST_API std::unique_ptr<BatchSource> make_outside_source(
    std::unique_ptr<OutsideBatches> batches, OutsideSpec spec, at::Device device,
    at::ScalarType image_dtype);

}  // namespace precast::data
