#include "tools/bench/kernels/normalize_case.h"

#include <fmt/core.h>

namespace precast::tools {
namespace {

constexpr std::size_t kImages = 1024;
constexpr std::size_t kSizePx = 224;

}  // namespace

KernelCase normalize_case(data::PixelType type) {
  constexpr std::size_t kPixels = kImages * kSizePx * kSizePx;
  const bool is_f32 = type == data::PixelType::f32;
  const std::size_t in_bytes = kPixels * 3;
  const std::size_t moved = data::normalize_bytes(in_bytes, type);
  const std::shared_ptr<void> in = gpu_memory(in_bytes);
  const std::shared_ptr<void> out = gpu_memory(moved - in_bytes);
  const data::NormalizeConstants constants{{123.675F, 116.28F, 103.53F},
                                           {58.395F, 57.12F, 57.375F}};
  return {fmt::format("{} x {} x {} x 3, uint8 to {}-bit floats", kImages, kSizePx, kSizePx,
                      is_f32 ? 32 : 16),
          moved, [=](cudaStream_t stream) {
            data::normalize(static_cast<const std::uint8_t*>(in.get()), in_bytes, constants, type,
                            out.get(), stream);
          }};
}

}  // namespace precast::tools
