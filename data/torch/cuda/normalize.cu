#include "data/torch/cuda/normalize.h"
#include "framework/core/cuda_values.cuh"

namespace precast::data {
namespace {

constexpr int kThreads = 256;
/// The number of values per thread: one 32-bit load.
constexpr int kValues = 4;

/// Thread i computes values 4i to 4i + 3, so the threads of a warp access adjacent memory. Value 4i
/// belongs to channel 4i mod 3 = i mod 3.
template <typename Out>
__global__ void normalize_kernel(const std::uint8_t* __restrict__ in, std::size_t count,
                                 NormalizeConstants constants, Out* __restrict__ out) {
  const std::size_t thread = static_cast<std::size_t>(blockIdx.x) * blockDim.x + threadIdx.x;
  const std::size_t first = thread * kValues;
  if (first >= count) return;
  const int channel = static_cast<int>(thread % 3);
  // The constants are selected, not indexed: an index known only at run time would put the arrays
  // in local memory instead of registers.
  const float means[3] = {constants.mean[0], constants.mean[1], constants.mean[2]};
  const float stds[3] = {constants.std[0], constants.std[1], constants.std[2]};
  const auto pick = [channel](const float(&values)[3], int next) {
    const int c = channel + next;
    return c == 0 || c == 3 ? values[0] : c == 1 || c == 4 ? values[1] : values[2];
  };
  if (count - first < kValues) {
    for (int v = 0; first + static_cast<std::size_t>(v) < count; ++v) {
      const std::size_t index = first + static_cast<std::size_t>(v);
      round_to((static_cast<float>(in[index]) - pick(means, v)) / pick(stds, v), out[index]);
    }
    return;
  }
  const uchar4 pixel = *reinterpret_cast<const uchar4*>(in + first);
  Pack<Out, kValues> quad;
  round_to((static_cast<float>(pixel.x) - pick(means, 0)) / pick(stds, 0), quad.values[0]);
  round_to((static_cast<float>(pixel.y) - pick(means, 1)) / pick(stds, 1), quad.values[1]);
  round_to((static_cast<float>(pixel.z) - pick(means, 2)) / pick(stds, 2), quad.values[2]);
  round_to((static_cast<float>(pixel.w) - pick(means, 0)) / pick(stds, 0), quad.values[3]);
  *reinterpret_cast<Pack<Out, kValues>*>(out + first) = quad;
}

template <typename Out>
void launch(const std::uint8_t* in, std::size_t count, const NormalizeConstants& constants,
            void* out, cudaStream_t stream) {
  const std::size_t threads = (count + kValues - 1) / kValues;
  const auto blocks = static_cast<unsigned>((threads + kThreads - 1) / kThreads);
  PRECAST_LAUNCH(normalize_kernel<Out>, blocks, kThreads, 0, stream, in, count, constants,
                 static_cast<Out*>(out));
}

}  // namespace

void normalize(const std::uint8_t* in, std::size_t values, const NormalizeConstants& constants,
               PixelType type, void* out, cudaStream_t stream) {
  if (values == 0) return;
  switch (type) {
    case PixelType::f32:
      return launch<float>(in, values, constants, out, stream);
    case PixelType::f16:
      return launch<__half>(in, values, constants, out, stream);
    case PixelType::bf16:
      return launch<__nv_bfloat16>(in, values, constants, out, stream);
  }
}

}  // namespace precast::data
