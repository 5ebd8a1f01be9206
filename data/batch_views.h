#pragma once

#include <cstddef>

#include "data/batch_source.h"
#include "framework/api/batch.h"

namespace precast::data {

/// Where image and label stand among the fields of a batch.
struct FieldPlaces {
  std::size_t image = 0;
  std::size_t label = 0;
};

/// @throws DataError naming the file if a field is missing or of another type.
[[nodiscard]] FieldPlaces find_fields(const BetonReader& reader, const FieldChoice& choice);

/// The tensors of `batch` as views of its memory, which they keep alive: images [N, H, W, 3] as
/// stored, numbers [N].
[[nodiscard]] Batch view_host_batch(const HostBatch& batch, const FieldPlaces& places);

/// The GPU's source; without CUDA a sibling file throws DeviceError.
[[nodiscard]] std::unique_ptr<BatchSource> make_cuda_batch_source(
    const BetonReader& reader, const ImagePipeline& pipeline, const LoaderOptions& options,
    const FieldPlaces& places, at::Device device, at::ScalarType image_dtype);

}  // namespace precast::data
