#include "tools/app/images_on_gpu.h"

#include <algorithm>

#include "data/loader/batch_layout.h"
#include "data/loader/image_planner.h"
#include "data/loader/loader.h"

namespace precast::tools {
namespace {

std::vector<data::Output> planned_outputs(const data::BetonReader& reader,
                                          const data::Pipeline& pipeline) {
  data::LoaderOptions options;
  options.plan_images = true;
  return data::outputs_of_loader(reader, pipeline, options);
}

}  // namespace

bool keeps_images_on_gpu(const ResolvedRun& run) {
  return run.config().data.in_memory == kImagesOnGpu && run.device.is_cuda();
}

void check_images_have_gpu(const ResolvedRun& run) {
  if (run.config().data.in_memory != kImagesOnGpu) return;
  if (!run.device.is_cuda())
    run.recipe.refuse("data.in_memory", "expected 0, 1 or 2 without a GPU, got gpu");
  if (!run.ring.empty() || !run.recipe.ring.name.empty() || !run.recipe.outside.empty()) {
    run.recipe.refuse("data.in_memory",
                      "expected 0, 1 or 2 with batches of another process, got gpu");
  }
}

void check_images_on_gpu(const data::BetonReader& reader, const data::Pipeline& pipeline,
                         const ResolvedRun& run, std::vector<std::int64_t> sizes_px) {
  if (!keeps_images_on_gpu(run)) return;
  const std::vector<data::Output> outputs = planned_outputs(reader, pipeline);
  std::ranges::sort(sizes_px);
  const auto repeated = std::ranges::unique(sizes_px);
  sizes_px.erase(repeated.begin(), repeated.end());
  for (const std::int64_t size_px : sizes_px)
    static_cast<void>(data::BatchLayout(outputs, /*batch_size=*/1, size_px));
}

std::uint64_t image_bytes_on_gpu(const data::BetonReader& reader, const data::Pipeline& pipeline,
                                 const ResolvedRun& run) {
  if (!keeps_images_on_gpu(run)) return 0;
  return data::planned_pixel_bytes(reader, planned_outputs(reader, pipeline));
}

}  // namespace precast::tools
