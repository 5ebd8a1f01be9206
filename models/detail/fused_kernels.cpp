#include "models/detail/fused_kernels.h"

#include <ATen/core/grad_mode.h>
#include <ATen/ops/empty.h>

#include <cstdint>

#include "framework/core/error.h"

namespace precast::models::detail {
namespace {

/// Kernels read and write up to 16 bytes at a time.
constexpr std::uintptr_t kAlignment = 16;
/// Some kernels number threads in 32 bits.
constexpr std::int64_t kMaxValues = std::int64_t{1} << 32;

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
  if (!fused_kernels()->supports(x)) return false;
  const at::ScalarType type = x.scalar_type();
  return (type == at::kFloat || type == at::kHalf || type == at::kBFloat16) && x.dim() == 4 &&
         x.numel() > x.size(1) && x.numel() < kMaxValues &&
         x.is_contiguous(at::MemoryFormat::ChannelsLast) && is_aligned(x);
}

ActivationType activation_type(at::ScalarType type) {
  if (type == at::kFloat) return ActivationType::f32;
  return type == at::kHalf ? ActivationType::f16 : ActivationType::bf16;
}

BatchNormShape norm_shape(const at::Tensor& x) {
  return {x.numel() / x.size(1), static_cast<int>(x.size(1)), activation_type(x.scalar_type())};
}

MaxPoolShape max_pool_shape(at::IntArrayRef sizes, at::ScalarType type) {
  return {sizes[0], static_cast<int>(sizes[2]), static_cast<int>(sizes[3]),
          static_cast<int>(sizes[1]), activation_type(type)};
}

at::Tensor empty_pooled(const at::Tensor& x, at::ScalarType type) {
  return at::empty({x.size(0), x.size(1), (x.size(2) + 1) / 2, (x.size(3) + 1) / 2},
                   x.options().dtype(type).memory_format(at::MemoryFormat::ChannelsLast));
}

std::int64_t* counter_of(const FusedNorm& norm) {
  return norm.num_batches_tracked.defined()
             ? norm.num_batches_tracked.mutable_data_ptr<std::int64_t>()
             : nullptr;
}

at::Tensor bytes_like(const at::Tensor& x, std::size_t bytes) {
  return at::empty({static_cast<std::int64_t>(bytes)}, x.options().dtype(at::kByte));
}

at::Tensor to_kernel_format(const at::Tensor& tensor, at::ScalarType type) {
  at::Tensor like = tensor.to(type).contiguous(at::MemoryFormat::ChannelsLast);
  return is_aligned(like) ? like : like.clone();
}

const void* optional_data(const at::Tensor& tensor, at::ScalarType type, at::Tensor& holder) {
  if (!tensor.defined()) return nullptr;
  holder = to_kernel_format(tensor, type);
  return holder.const_data_ptr();
}

void require_first_derivative() {
  require(!at::GradMode::is_enabled(),
          "fused ops can be differentiated only once; set model.kernels: reference");
}

at::Tensor fork_of(const at::Tensor& tensor) {
  return tensor.variable_data();
}

std::pair<at::Tensor, at::Tensor> fork_gradients(const std::vector<at::Tensor>& gradients) {
  if (gradients[0].defined()) return {gradients[0], gradients[1]};
  return {gradients[1], {}};
}

}  // namespace precast::models::detail
