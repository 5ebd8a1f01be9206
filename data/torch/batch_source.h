#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <memory>

#include "data/beton/reader.h"
#include "data/loader/loader.h"
#include "data/transforms/pipeline.h"
#include "framework/api/batch_source.h"
#include "framework/core/export.h"

namespace precast::data {

/// Which outputs are the image and the label. Empty names: the first image (in a file without
/// images the first of the pixels and ragged, else of the arrays, else of the texts) and the first
/// integer field (else float).
struct FieldChoice {
  std::string image;
  std::string label;
};

/// Batches that are copied to a GPU ahead of the one in use.
inline constexpr std::int64_t kCopiedAhead = 2;

/// Batches of a .beton file as tensors on `device`. Borrows `reader`, which outlives the source and
/// its batches. On a CPU the loader's threads normalise and the tensors are views of the loader's
/// memory. On a GPU uint8 images are copied from page-locked memory on a stream of their own, ahead
/// of the training, and normalised on the device. Images that the pipeline converts itself come as
/// it says.
/// @param image_dtype float32; on a GPU float16 or bfloat16 as well.
/// @throws DataError if input and label are not there; ConfigError if the pipeline does not fit the
/// file; DeviceError if this build has no CUDA and
/// `device` asks for it.
[[nodiscard]] PRECAST_API std::unique_ptr<BatchSource> make_batch_source(
    const BetonReader& reader, const Pipeline& pipeline, const LoaderOptions& options,
    const FieldChoice& fields, at::Device device, at::ScalarType image_dtype);

}  // namespace precast::data
