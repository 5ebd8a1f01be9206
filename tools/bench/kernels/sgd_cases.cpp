#include "tools/bench/kernels/sgd_cases.h"

#include <fmt/core.h>

#include <cstddef>
#include <numeric>
#include <vector>

namespace precast::tools {
namespace {

using recipes::SgdTensor;

/// Returns the number of elements of each parameter of ResNet-50.
std::vector<std::int64_t> resnet50_sizes() {
  std::vector<std::int64_t> sizes;
  const auto add = [&](std::int64_t in, std::int64_t out, std::int64_t kernel) {
    // A convolution, then the weight and the bias of its norm.
    sizes.insert(sizes.end(), {in * out * kernel * kernel, out, out});
  };
  add(3, 64, 7);
  std::int64_t in = 64, width = 64;
  for (const int blocks : {3, 4, 6, 3}) {
    for (int block = 0; block < blocks; ++block) {
      add(in, width, 1);
      add(width, width, 3);
      add(width, 4 * width, 1);
      if (block == 0) add(in, 4 * width, 1);
      in = 4 * width;
    }
    width *= 2;
  }
  sizes.insert(sizes.end(), {in * 1000, 1000});
  return sizes;
}

/// Parts of one block of GPU memory, each aligned to 256 bytes.
class Parts {
 public:
  Parts(const std::vector<std::int64_t>& sizes, FloatType type)
      : value_bytes_(bytes_of(type)), memory_(gpu_memory(bytes_of_all(sizes))) {}
  [[nodiscard]] void* next(std::int64_t size) {
    void* const part = static_cast<std::byte*>(memory_.get()) + used_;
    used_ += aligned(size);
    return part;
  }
  [[nodiscard]] const std::shared_ptr<void>& memory() const { return memory_; }

 private:
  [[nodiscard]] std::size_t aligned(std::int64_t size) const {
    return (static_cast<std::size_t>(size) * value_bytes_ + 255) / 256 * 256;
  }
  [[nodiscard]] std::size_t bytes_of_all(const std::vector<std::int64_t>& sizes) const {
    std::size_t bytes = 0;
    for (const std::int64_t size : sizes) bytes += aligned(size);
    return bytes;
  }

  std::size_t value_bytes_;
  std::shared_ptr<void> memory_;
  std::size_t used_ = 0;
};

/// The parameters of ResNet-50 in GPU memory, with velocities and gradients.
struct Parameters {
  std::int64_t elements = 0;
  std::vector<SgdTensor> tensors;
  std::vector<std::shared_ptr<void>> memory;

  explicit Parameters(FloatType gradients) {
    const std::vector<std::int64_t> sizes = resnet50_sizes();
    elements = std::accumulate(sizes.begin(), sizes.end(), std::int64_t{0});
    Parts values(sizes, FloatType::f32), velocities(sizes, FloatType::f32),
        gradient_values(sizes, gradients);
    for (const std::int64_t size : sizes) {
      SgdTensor& tensor = tensors.emplace_back();
      tensor.count = size;
      tensor.weight_decay = 5e-5F;
      tensor.gradient_type = gradients;
      tensor.parameter = static_cast<float*>(values.next(size));
      tensor.velocity = static_cast<float*>(velocities.next(size));
      tensor.gradient = gradient_values.next(size);
    }
    memory = {values.memory(), velocities.memory(), gradient_values.memory()};
  }

  [[nodiscard]] std::string shape(FloatType gradients) const {
    return fmt::format("{} parameters in {} tensors, {}-bit gradients", elements, tensors.size(),
                       8 * bytes_of(gradients));
  }
};

}  // namespace

KernelCase sgd_case(FloatType gradients) {
  const Parameters parameters(gradients);
  return {parameters.shape(gradients), recipes::sgd_bytes(parameters.tensors),
          [=](cudaStream_t stream) {
            recipes::sgd_step(parameters.tensors, {.lr = 1e-3F, .momentum = 0.9F}, stream);
          }};
}

KernelCase gradient_norm_case(FloatType gradients) {
  const Parameters parameters(gradients);
  const std::shared_ptr<void> results = gpu_memory(2 * sizeof(float));
  const std::shared_ptr<void> workspace =
      gpu_memory(recipes::gradient_norm_workspace_bytes(parameters.tensors));
  return {parameters.shape(gradients), recipes::gradient_norm_bytes(parameters.tensors),
          [=](cudaStream_t stream) {
            auto* const values = static_cast<float*>(results.get());
            recipes::gradient_norm(
                parameters.tensors,
                {.norm = values, .clip = values + 1, .workspace = workspace.get()}, stream);
          }};
}

}  // namespace precast::tools
