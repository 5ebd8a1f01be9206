#include "models/detail/fused_kernels.h"

#include <cstdint>

#include "models/detail/fused_norm.h"

namespace precast::models::detail {
namespace {

/// Kernels read and write 16 bytes at a time.
constexpr std::uintptr_t kAlignment = 16;
/// Some kernels number threads in 32 bits.
constexpr std::int64_t kMostValues = std::int64_t{1} << 32;

const FusedKernels*& chosen_kernels() {
  static const FusedKernels* kernels = gpu_kernels();
  return kernels;
}

bool is_aligned(const at::Tensor& tensor) {
  return reinterpret_cast<std::uintptr_t>(tensor.const_data_ptr()) % kAlignment == 0;
}

}  // namespace

const FusedKernels* fused_kernels() {
  return chosen_kernels();
}

void set_fused_kernels(const FusedKernels* kernels) {
  chosen_kernels() = kernels;
}

bool has_fused_kernels() {
  return true;
}

bool can_fuse(const at::Tensor& x) {
  if (!fused_kernels()->run_on(x)) return false;
  const at::ScalarType type = x.scalar_type();
  return (type == at::kFloat || type == at::kHalf || type == at::kBFloat16) && x.dim() == 4 &&
         x.numel() > x.size(1) && x.numel() < kMostValues &&
         x.is_contiguous(at::MemoryFormat::ChannelsLast) && is_aligned(x);
}

ActivationType activation_type(at::ScalarType type) {
  if (type == at::kFloat) return ActivationType::f32;
  return type == at::kHalf ? ActivationType::f16 : ActivationType::bf16;
}

at::Tensor as_kernels_read(const at::Tensor& tensor, at::ScalarType type) {
  at::Tensor like = tensor.to(type).contiguous(at::MemoryFormat::ChannelsLast);
  return is_aligned(like) ? like : like.clone();
}

const void* optional_data(const at::Tensor& tensor, at::ScalarType type, at::Tensor& holder) {
  if (!tensor.defined()) return nullptr;
  holder = as_kernels_read(tensor, type);
  return holder.const_data_ptr();
}

at::Tensor fork_of(const at::Tensor& tensor) {
  return tensor.variable_data();
}

std::pair<at::Tensor, at::Tensor> fork_gradients(const std::vector<at::Tensor>& gradients) {
  if (gradients[0].defined()) return {gradients[0], gradients[1]};
  return {gradients[1], {}};
}

}  // namespace precast::models::detail
