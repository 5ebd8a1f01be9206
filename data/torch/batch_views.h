#pragma once

#include <c10/core/ScalarType.h>

#include <cstddef>
#include <memory>
#include <vector>

#include "data/loader/outputs.h"
#include "data/torch/batch_source.h"
#include "framework/api/batch.h"
#include "framework/core/export.h"

namespace precast::data {

/// The outputs of a source's batches, and which of them are inputs and targets.
struct BatchFields {
  /// One per tensor.
  std::vector<Output> outputs;
  /// Indices into `outputs`, as Batch::inputs and Batch::targets.
  std::vector<std::size_t> inputs;
  std::vector<std::size_t> targets;
};

[[nodiscard]] at::ScalarType scalar_type(ElementType type);

/// Selects the inputs and targets among the loader's outputs. @throws DataError naming the file if
/// `choice` names an output that does not exist, or there is no output of a suitable kind
[[nodiscard]] PRECAST_API BatchFields find_fields(const BetonReader& reader,
                                                  std::vector<Output> outputs,
                                                  const FieldChoice& choice);

/// Returns the tensors of `batch` as views of its memory, with the same layout. The views keep the
/// memory alive.
[[nodiscard]] Batch view_host_batch(const HostBatch& batch, const BatchFields& fields);

/// Creates the source for a GPU. @throws DeviceError in a build without CUDA.
[[nodiscard]] std::unique_ptr<BatchSource> make_cuda_batch_source(
    const BetonReader& reader, const Pipeline& pipeline, const LoaderOptions& options,
    BatchFields fields, at::Device device, at::ScalarType image_dtype, SharedRing ring);

}  // namespace precast::data
