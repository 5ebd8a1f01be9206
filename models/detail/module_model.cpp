#include "models/detail/module_model.h"

#include <ATen/core/grad_mode.h>

#include <set>
#include <string>

#include "models/detail/batch_norm.h"
#include "models/detail/blur_conv.h"
#include "models/detail/max_pool.h"

namespace precast::models::detail {
namespace {

/// Collects tensors in the order of Python's state_dict(): the module's parameters, its buffers,
/// then its children.
void collect_state(const torch::nn::Module& module, const std::string& prefix,
                   std::vector<NamedTensor>& state) {
  for (const auto& parameter : module.named_parameters(/*recurse=*/false))
    state.push_back({prefix + parameter.key(), parameter.value().detach()});
  for (const auto& buffer : module.named_buffers(/*recurse=*/false))
    state.push_back({prefix + buffer.key(), buffer.value()});
  for (const auto& child : module.named_children())
    collect_state(*child.value(), prefix + child.key() + ".", state);
}

at::Tensor moved(const at::Tensor& tensor, at::Device device, bool channels_last) {
  if (tensor.dim() != 4) return tensor.to(device);
  const auto layout = channels_last ? at::MemoryFormat::ChannelsLast : at::MemoryFormat::Contiguous;
  return tensor.to(tensor.options().device(device), /*non_blocking=*/false, /*copy=*/false, layout);
}

}  // namespace

std::vector<NamedTensor> parameters_of(const torch::nn::Module& module) {
  std::vector<NamedTensor> parameters;
  std::set<const void*> known;
  for (const auto& parameter : module.named_parameters()) {
    // Unlike Python's parameters(), libtorch's lists a tensor once for each of its names.
    if (known.insert(parameter.value().unsafeGetTensorImpl()).second)
      parameters.push_back({parameter.key(), parameter.value()});
  }
  return parameters;
}

std::vector<NamedTensor> state_of(const torch::nn::Module& module) {
  std::vector<NamedTensor> state;
  collect_state(module, "", state);
  return state;
}

BlurredLayers blurred_layers_of(const torch::nn::Module& module) {
  BlurredLayers layers;
  for (const auto& entry : module.named_modules(/*name_prefix=*/"", /*include_self=*/false)) {
    const auto* conv = entry.value()->as<BlurConv2dImpl>();
    if (conv != nullptr && conv->blurs()) layers.emplace(entry.key(), conv->options.in_channels());
  }
  return layers;
}

FusedLayerCounts fused_layer_counts_of(const torch::nn::Module& module) {
  FusedLayerCounts kernels;
  for (const auto& child : module.modules(/*include_self=*/false)) {
    if (const auto* conv = child->as<BlurConv2dImpl>(); conv != nullptr) {
      if (conv->fuses_blur()) ++kernels.blurs;
      if (conv->fuses_stem()) ++kernels.stems;
    }
    if (const auto* pool = child->as<MaxPool2dImpl>(); pool != nullptr && pool->is_fused())
      ++kernels.max_pools;
    const auto* norm = child->as<BatchNorm2dImpl>();
    if (norm == nullptr) continue;
    if (norm->unfused_reason().empty()) {
      ++kernels.fused;
    } else {
      ++kernels.reference[norm->unfused_reason()];
    }
  }
  return kernels;
}

void move(torch::nn::Module& module, at::Device device, bool channels_last) {
  const at::NoGradGuard no_grad;
  for (at::Tensor& parameter : module.parameters()) {
    parameter.mutable_grad().reset();
    parameter.set_data(moved(parameter, device, channels_last));
  }
  for (at::Tensor& buffer : module.buffers()) buffer.set_data(moved(buffer, device, channels_last));
}

}  // namespace precast::models::detail
