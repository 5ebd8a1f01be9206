#include "recipes/optim/fused_sgd.h"

#include <ATen/ops/empty.h>

#include <algorithm>
#include <cstring>

#include "framework/core/error.h"
#include "recipes/detail/fused_kernels.h"

namespace precast::recipes {
namespace {

using Groups = std::vector<ParameterGroups::Group>;

std::optional<FloatType> float_type(at::ScalarType type) {
  if (type == at::kFloat) return FloatType::f32;
  if (type == at::kHalf) return FloatType::f16;
  if (type == at::kBFloat16) return FloatType::bf16;
  return std::nullopt;
}

std::vector<SgdTensor> tensors_of(const Groups& groups) {
  std::vector<SgdTensor> tensors;
  for (const ParameterGroups::Group& group : groups) {
    for (std::size_t i = 0; i < group.parameters.size(); ++i) {
      const at::Tensor &parameter = group.parameters[i], &gradient = group.gradients[i];
      float* const velocity =
          group.moments.empty() ? nullptr : group.moments[0][i].mutable_data_ptr<float>();
      tensors.push_back({.parameter = parameter.mutable_data_ptr<float>(),
                         .gradient = gradient.const_data_ptr(),
                         .velocity = velocity,
                         .count = parameter.numel(),
                         .weight_decay = static_cast<float>(group.weight_decay),
                         .gradient_type = *float_type(gradient.scalar_type())});
    }
  }
  return tensors;
}

class TableSgd final : public FusedSgd {
 public:
  TableSgd(double momentum, bool nesterov)
      : momentum_(static_cast<float>(momentum)), nesterov_(nesterov) {}

  [[nodiscard]] bool can_step(const Groups& groups) const override {
    if (groups.empty()) return false;
    const at::Device device = groups[0].parameters[0].device();
    return std::ranges::all_of(groups, [&](const ParameterGroups::Group& group) {
      return std::ranges::all_of(group.parameters,
                                 [&](const at::Tensor& parameter) {
                                   return detail::fused_kernels()->run_on(parameter) &&
                                          parameter.device() == device &&
                                          parameter.scalar_type() == at::kFloat;
                                 }) &&
             std::ranges::all_of(group.gradients, [&](const at::Tensor& gradient) {
               return gradient.device() == device && float_type(gradient.scalar_type());
             });
    });
  }

  void step(const Groups& groups, double lr,
            const std::optional<Optimizer::Scaled>& scaled) override {
    require(can_step(groups), "fused kernels run only where can_step() is true");
    const at::Tensor& on = groups[0].parameters[0];
    // Addresses of gradients usually repeat from step to step.
    if (std::vector<SgdTensor> tensors = tensors_of(groups); tensors != tensors_) {
      tensors_ = std::move(tensors);
      upload(on.device());
    }
    const auto* const table = static_cast<const std::byte*>(table_.const_data_ptr());
    detail::fused_kernels()->sgd_step(
        on,
        {.tensors = reinterpret_cast<const SgdTensor*>(table),
         .chunks = reinterpret_cast<const SgdChunk*>(table + tensors_.size() * sizeof(SgdTensor)),
         .chunk_count = chunk_count_},
        {.lr = static_cast<float>(lr),
         .momentum = momentum_,
         .nesterov = nesterov_,
         .found_inf = scaled ? scaled->found_inf.const_data_ptr<float>() : nullptr});
  }

 private:
  void upload(at::Device device) {
    const std::vector<SgdChunk> chunks = sgd_chunks(tensors_);
    const std::size_t tensor_bytes = tensors_.size() * sizeof(SgdTensor),
                      chunk_bytes = chunks.size() * sizeof(SgdChunk);
    // Pinned memory is not used again before the copy is done.
    const at::Tensor host = at::empty({static_cast<std::int64_t>(tensor_bytes + chunk_bytes)},
                                      at::TensorOptions(at::kByte).pinned_memory(device.is_cuda()));
    auto* const bytes = static_cast<std::byte*>(host.mutable_data_ptr());
    std::memcpy(bytes, tensors_.data(), tensor_bytes);
    if (!chunks.empty()) std::memcpy(bytes + tensor_bytes, chunks.data(), chunk_bytes);
    table_ = host.to(device, /*non_blocking=*/true);
    chunk_count_ = static_cast<int>(chunks.size());
  }

  float momentum_;
  bool nesterov_;
  /// The tensors that the table contains.
  std::vector<SgdTensor> tensors_;
  int chunk_count_ = 0;
  /// Bytes on the device: tensors_, then their chunks.
  at::Tensor table_;
};

}  // namespace

std::unique_ptr<FusedSgd> make_fused_sgd(double momentum, bool nesterov) {
  return std::make_unique<TableSgd>(momentum, nesterov);
}

}  // namespace precast::recipes
