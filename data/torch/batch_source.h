#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "data/beton/reader.h"
#include "data/loader/loader.h"
#include "data/ring/shared_loader.h"
#include "data/transforms/pipeline.h"
#include "framework/api/batch_source.h"
#include "framework/core/export.h"

namespace precast::data {

/// The names of the outputs that the model reads (inputs) and that the loss reads (targets). If
/// `inputs` is empty, the input is the first image output; if there is none, the first output of a
/// `pixels` or `ragged` field, else the first array, else the first `bytes` or `json` field. If
/// `targets` is empty, the target is the first integer field, else the first float field; there is
/// no target if `needs_target` is false.
struct FieldChoice {
  std::vector<std::string> inputs;
  std::vector<std::string> targets;
  bool needs_target = true;
};

/// Limits on the batches in a GPU's memory: the number copied ahead of the batch returned last, and
/// the number of returned batches on which work is queued. @{
inline constexpr std::int64_t kCopiedAhead = 2;
inline constexpr std::int64_t kMaxInUse = 4;
/// @}

/// Creates a source of the batches of a .beton file as tensors on `device`. Borrows `reader`, which
/// must outlive the source. On a CPU the loader's threads normalise, and the tensors are views of
/// the loader's memory. On a GPU, uint8 images are copied from page-locked memory on a separate
/// stream, before training needs them, and normalised on the device. Images that the pipeline
/// converts itself keep the type that it sets. With options.plan_images, which needs a GPU, the
/// first begin_epoch() copies all stored images to the GPU, which computes each batch from them;
/// the batches are the same.
/// @param image_dtype float32; on a GPU float16 or bfloat16 as well.
/// @param ring the ring from which batches are taken if possible (SharedLoader).
/// @throws the errors of SharedLoader's constructor; DataError if `fields` names an output that
/// does not exist, or the pipeline has no output of a suitable kind; DeviceError if `device` is a
/// GPU and this build has no CUDA. The first begin_epoch() throws Error with
/// ExitCode::out_of_memory if stored images do not fit in the GPU's memory.
[[nodiscard]] PRECAST_API std::unique_ptr<BatchSource> make_batch_source(
    const BetonReader& reader, const Pipeline& pipeline, const LoaderOptions& options,
    const FieldChoice& fields, at::Device device, at::ScalarType image_dtype,
    const SharedRing& ring = {});

/// Returns a function that makes batches with the names, shapes and types of a make_batch_source()
/// source, without reading samples: each image is the same ramp, from -2 to 2, the range of
/// normalised images, or from 0 to 255 if images are bytes; all other values are 0. Does not borrow
/// its arguments. @throws DataError and ConfigError in the same cases as make_batch_source()
[[nodiscard]] PRECAST_API BatchMaker make_batch_maker(const BetonReader& reader,
                                                      const Pipeline& pipeline,
                                                      const FieldChoice& fields, at::Device device,
                                                      at::ScalarType image_dtype);

}  // namespace precast::data
