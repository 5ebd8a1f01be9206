#include "tools/bench/kernels/planned_images_case.h"

#include <fmt/core.h>

#include <cstring>
#include <vector>

#include "data/loader/image_planner.h"
#include "data/torch/cuda/planned_images.h"

namespace precast::tools {
namespace {

constexpr int kImages = 1024;
constexpr int kStoredPx = 320;
constexpr int kSizePx = 224;
constexpr std::size_t kStoredBytes = std::size_t{3} * kStoredPx * kStoredPx;
constexpr std::size_t kValues = std::size_t{3} * kSizePx * kSizePx;

}  // namespace

KernelCase planned_images_case(data::PixelType type) {
  const data::ImageOutput image{.pipeline = data::standard_train_pipeline(),
                                .max_stored_side_px = kStoredPx};
  const std::size_t plan_bytes = data::image_plan_bytes(image, kSizePx);
  data::ImagePlanner planner(image.pipeline, /*seed=*/1, /*view=*/{});
  std::vector<std::byte> plans(kImages * plan_bytes);
  std::vector<std::uint64_t> offsets(kImages);
  const std::vector<std::int32_t> widths(kImages, kStoredPx);
  const std::size_t out_bytes = kImages * kValues * (type == data::PixelType::f32 ? 4 : 2);
  std::size_t moved = 0;
  for (std::uint64_t i = 0; i < kImages; ++i) {
    offsets[i] = i * kStoredBytes;
    std::byte* const at = plans.data() + i * plan_bytes;
    planner.plan(kStoredPx, kStoredPx, {.sample = i, .position = i}, kSizePx, at);
    data::ImagePlan plan;
    std::memcpy(&plan, at, sizeof plan);
    moved += data::planned_image_bytes(plan, type);
  }
  const auto pixels = gpu_memory(kImages * kStoredBytes);
  const auto on_gpu = [](const auto& values) {
    return gpu_copy(values.data(), values.size() * sizeof(values[0]));
  };
  const std::shared_ptr<void> plans_on_gpu = on_gpu(plans);
  const std::shared_ptr<void> offsets_on_gpu = on_gpu(offsets);
  const std::shared_ptr<void> widths_on_gpu = on_gpu(widths);
  const std::shared_ptr<void> out = gpu_memory(out_bytes);
  const data::NormalizeConstants constants{{123.675F, 116.28F, 103.53F},
                                           {58.395F, 57.12F, 57.375F}};
  return {fmt::format("{} crops of {} x {} to {} x {} px", kImages, kStoredPx, kStoredPx, kSizePx,
                      kSizePx),
          moved, [=](cudaStream_t stream) {
            data::make_planned_images(
                {static_cast<const std::uint8_t*>(pixels.get()),
                 static_cast<const std::uint64_t*>(offsets_on_gpu.get()),
                 static_cast<const std::int32_t*>(widths_on_gpu.get()), kStoredPx},
                {static_cast<const std::byte*>(plans_on_gpu.get()), plan_bytes, kImages, kSizePx},
                constants, type, out.get(), stream);
          }};
}

}  // namespace precast::tools
