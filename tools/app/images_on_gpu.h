#pragma once

#include <cstdint>
#include <vector>

#include "data/beton/reader.h"
#include "data/transforms/pipeline.h"
#include "tools/app/resolved_run.h"

// data.in_memory: gpu (data/README.md, Images in the GPU's memory).

namespace precast::tools {

/// Whether training keeps the stored images in the GPU's memory (data.in_memory: gpu).
[[nodiscard]] bool keeps_images_on_gpu(const ResolvedRun& run);
/// @throws ConfigError if data.in_memory is gpu, but the run has no GPU or receives its batches
/// from another process
void check_images_have_gpu(const ResolvedRun& run);
/// @throws ConfigError if the run keeps images in a GPU's memory, but the GPU cannot produce images
/// of one of these sizes from this dataset (data::plan_images, data::BatchLayout)
void check_images_on_gpu(const data::BetonReader& reader, const data::Pipeline& pipeline,
                         const ResolvedRun& run, std::vector<std::int64_t> sizes_px);

/// The size of the dataset's images in the GPU's memory, in bytes; 0 if training does not keep them
/// there.
[[nodiscard]] std::uint64_t image_bytes_on_gpu(const data::BetonReader& reader,
                                               const data::Pipeline& pipeline,
                                               const ResolvedRun& run);

}  // namespace precast::tools
