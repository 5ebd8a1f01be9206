// libtorch has the five operators of a batch normalisation over ranks only for GPUs. These CPU
// kernels follow the definitions in aten/src/ATen/native/cuda/Normalization.cuh and check the
// assumptions of those kernels, so that callers can be tested without a GPU.
#include <ATen/TensorOperators.h>
#include <torch/library.h>

#include <optional>
#include <tuple>

namespace precast::test {
namespace {

using at::Tensor;
using OptionalTensor = std::optional<Tensor>;

const std::vector<std::int64_t> kAllButChannels = {0, 2, 3};

Tensor by_channel(const Tensor& values) {
  return values.to(at::kDouble).view({1, -1, 1, 1});
}

void check_images(const Tensor& x) {
  TORCH_CHECK(x.dim() == 4 && x.numel() > 0);
  TORCH_CHECK(x.is_contiguous() || x.is_contiguous(at::MemoryFormat::ChannelsLast));
}

void check_pair(const Tensor& g, const Tensor& x) {
  check_images(x);
  TORCH_CHECK(g.scalar_type() == x.scalar_type());
  TORCH_CHECK(g.strides() == x.strides());
}

void check_statistics(const Tensor& values) {
  TORCH_CHECK(values.scalar_type() == at::kFloat);
}

std::tuple<Tensor, Tensor> stats(const Tensor& x, double eps) {
  check_images(x);
  const Tensor wide = x.to(at::kDouble);
  const Tensor mean = wide.mean(kAllButChannels);
  const Tensor variance = (wide - by_channel(mean)).square().mean(kAllButChannels);
  return {mean.to(at::kFloat), (variance + eps).rsqrt().to(at::kFloat)};
}

/// mean, inverse_std [world, C], counts [world].
std::tuple<Tensor, Tensor> gather_stats(const Tensor& /*x*/, const Tensor& mean,
                                        const Tensor& inverse_std,
                                        const OptionalTensor& running_mean,
                                        const OptionalTensor& running_var, double momentum,
                                        double eps, const Tensor& counts) {
  check_statistics(mean);
  check_statistics(inverse_std);
  TORCH_CHECK(counts.dim() == 1 && counts.scalar_type() == running_mean->scalar_type());
  const Tensor n = counts.to(at::kDouble).view({-1, 1});
  const Tensor means = mean.to(at::kDouble);
  const Tensor variances = inverse_std.to(at::kDouble).pow(-2) - eps;
  const Tensor all = n.sum();
  const Tensor joint_mean = (means * n).sum(0) / all;
  const Tensor joint_variance = ((variances + (means - joint_mean).square()) * n).sum(0) / all;
  running_mean->mul_(1 - momentum).add_(joint_mean, momentum);
  running_var->mul_(1 - momentum).add_(joint_variance * (all / (all - 1)), momentum);
  return {joint_mean.to(at::kFloat), (joint_variance + eps).rsqrt().to(at::kFloat)};
}

Tensor elemt(const Tensor& x, const OptionalTensor& weight, const OptionalTensor& bias,
             const Tensor& mean, const Tensor& inverse_std, double /*eps*/) {
  check_images(x);
  const Tensor normal = (x.to(at::kDouble) - by_channel(mean)) * by_channel(inverse_std);
  return (normal * by_channel(*weight) + by_channel(*bias)).to(x.scalar_type());
}

std::tuple<Tensor, Tensor, Tensor, Tensor> backward_reduce(
    const Tensor& g, const Tensor& x, const Tensor& mean, const Tensor& inverse_std,
    const OptionalTensor& weight, bool input_g, bool weight_g, bool bias_g) {
  check_pair(g, x);
  const Tensor wide = g.to(at::kDouble);
  const Tensor sum = wide.sum(kAllButChannels);
  const Tensor centred = (wide * (x.to(at::kDouble) - by_channel(mean))).sum(kAllButChannels);
  const auto type = weight->scalar_type();
  return {input_g ? sum.to(at::kFloat) : Tensor(), input_g ? centred.to(at::kFloat) : Tensor(),
          weight_g ? (centred * inverse_std).to(type) : Tensor(), bias_g ? sum.to(type) : Tensor()};
}

Tensor backward_elemt(const Tensor& g, const Tensor& x, const Tensor& mean,
                      const Tensor& inverse_std, const OptionalTensor& weight, const Tensor& sum,
                      const Tensor& centred, const Tensor& counts) {
  check_pair(g, x);
  check_statistics(*weight);
  TORCH_CHECK(counts.scalar_type() == at::kInt && counts.is_contiguous());
  const Tensor n = counts.sum().to(at::kDouble);
  const Tensor inner = g.to(at::kDouble) - by_channel(sum / n) -
                       (x.to(at::kDouble) - by_channel(mean)) *
                           by_channel(inverse_std.to(at::kDouble).square() * (centred / n));
  return (inner * by_channel(inverse_std) * by_channel(*weight)).to(g.scalar_type());
}

TORCH_LIBRARY_IMPL(aten, CPU, library) {
  library.impl("batch_norm_stats", stats);
  library.impl("batch_norm_gather_stats_with_counts", gather_stats);
  library.impl("batch_norm_elemt", elemt);
  library.impl("batch_norm_backward_reduce", backward_reduce);
  library.impl("batch_norm_backward_elemt", backward_elemt);
}

}  // namespace
}  // namespace precast::test
