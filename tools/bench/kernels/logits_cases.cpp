#include "tools/bench/kernels/logits_cases.h"

#include <fmt/core.h>

#include <vector>

#include "recipes/cuda/cross_entropy.h"
#include "recipes/cuda/top_k.h"

namespace precast::tools {
namespace {

using recipes::LogitsShape;

constexpr std::int64_t kSamples = 128 << 10;
constexpr int kClasses = 1000;

std::shared_ptr<void> labels_on_gpu() {
  std::vector<std::int64_t> labels(kSamples);
  for (std::size_t i = 0; i < labels.size(); ++i)
    labels[i] = static_cast<std::int64_t>(i * 7919 % kClasses);
  return gpu_copy(labels.data(), labels.size() * sizeof(std::int64_t));
}

std::string describe(FloatType type) {
  return fmt::format("{} x {}, {}-bit floats", kSamples, kClasses, 8 * bytes_of(type));
}

}  // namespace

KernelCase cross_entropy_case(FloatType type, bool gradient) {
  const LogitsShape shape{kSamples, kClasses, type};
  const std::shared_ptr<void> logits = gpu_memory(logits_bytes(shape));
  const std::shared_ptr<void> labels = labels_on_gpu();
  const std::shared_ptr<void> d_logits = gradient ? gpu_memory(logits_bytes(shape)) : nullptr;
  const std::shared_ptr<void> loss = gpu_memory(sizeof(float));
  const std::shared_ptr<void> workspace = gpu_memory(cross_entropy_workspace_bytes(shape));
  return {describe(type) + (gradient ? ", with the gradient" : ""),
          cross_entropy_bytes(shape, gradient), [=](cudaStream_t stream) {
            recipes::cross_entropy(shape,
                                   {.logits = logits.get(),
                                    .labels = static_cast<const std::int64_t*>(labels.get()),
                                    .label_smoothing = 0.1F,
                                    .loss = static_cast<float*>(loss.get()),
                                    .d_logits = d_logits.get(),
                                    .workspace = workspace.get()},
                                   stream);
          }};
}

KernelCase top_k_case(FloatType type) {
  const LogitsShape shape{kSamples, kClasses, type};
  const std::shared_ptr<void> logits = gpu_memory(logits_bytes(shape));
  const std::shared_ptr<void> labels = labels_on_gpu();
  const std::shared_ptr<void> count = gpu_memory(sizeof(double));
  const std::shared_ptr<void> workspace = gpu_memory(top_k_workspace_bytes(shape));
  return {describe(type), top_k_bytes(shape), [=](cudaStream_t stream) {
            recipes::count_top_k(shape,
                                 {.logits = logits.get(),
                                  .labels = static_cast<const std::int64_t*>(labels.get()),
                                  .k = 5,
                                  .count = static_cast<double*>(count.get()),
                                  .workspace = workspace.get()},
                                 stream);
          }};
}

}  // namespace precast::tools
