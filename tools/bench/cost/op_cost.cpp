#include "tools/bench/cost/op_cost.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <utility>

namespace precast::tools {
namespace {

// Tiles of cuDNN's and cuBLAS's kernels for tensor cores, and the alignment of their inner
// dimension. NVIDIA, "Matrix Multiplication Background User's Guide": dimension and wave
// quantisation; 128 x 128 is a common large tile, and kernels for few columns use 64.
// "Convolutional Layers User's Guide": channels are padded to a multiple of 8.
constexpr double kTileRows = 128;
constexpr double kTileColumns = 64;
constexpr std::int64_t kChannelAlignment = 8;

double round_up(double value, double to) {
  return std::ceil(value / to) * to;
}

/// Bytes of an element on the card.
double element_bytes(const TracedTensor& tensor, bool half) {
  if (!tensor.is_float) return tensor.element_bytes;
  return half ? 2 : 4;
}

double bytes_of(const TracedTensor& tensor, bool half) {
  return tensor.defined ? tensor.elements() * element_bytes(tensor, half) : 0;
}

/// The sum of bytes_of(). @param half whether autocast runs the op in half precision, so that all
/// of its floating-point tensors have 2 bytes per element.
double all_bytes(std::initializer_list<const TracedTensor*> tensors, bool half) {
  double bytes = 0;
  for (const TracedTensor* tensor : tensors) bytes += bytes_of(*tensor, half);
  return bytes;
}

OpCost cast_cost(const TracedOp& op, const TracedTensor& weight) {
  return {.name = "autocast",
          .kind = OpKind::cast,
          .phase = op.phase,
          .bytes = weight.elements() * (4 + 2),
          .elements = weight.elements()};
}

struct ConvolutionShape {
  double batch_pixels_out, batch_pixels_in, in, out, taps, groups;
  bool depthwise;
};

/// The shape of a convolution that is not transposed.
/// @param input [N, C, ...] @param output [N, O, ...] @param weight [O, C / groups, ...]
ConvolutionShape shape_of(const TracedTensor& input, const TracedTensor& output,
                          const TracedTensor& weight) {
  ConvolutionShape shape{};
  shape.in = static_cast<double>(input.sizes.at(1));
  shape.out = static_cast<double>(output.sizes.at(1));
  const double per_group = static_cast<double>(weight.sizes.at(1));
  shape.groups = std::max(1., shape.in / per_group);
  shape.taps = weight.elements() / static_cast<double>(weight.sizes[0]) / per_group;
  shape.batch_pixels_in = input.elements() / shape.in;
  shape.batch_pixels_out = output.elements() / shape.out;
  shape.depthwise = per_group == 1 && shape.groups > 1;
  return shape;
}

/// The matrix products that a convolution and its gradients compute.
struct ConvolutionProducts {
  Gemm result, input_gradient, weight_gradient;
};

ConvolutionProducts products_of(const ConvolutionShape& shape) {
  const double group_out = shape.out / shape.groups;
  const double group_in = shape.in / shape.groups;
  const double aligned =
      shape.groups > 1 ? group_in : round_up(group_in, static_cast<double>(kChannelAlignment));
  // With a stride, most filter taps of an input pixel do not contribute to any output pixel.
  // Kernels compute only the taps that do.
  const double inner = group_out * shape.taps * shape.batch_pixels_out / shape.batch_pixels_in;
  return {{shape.batch_pixels_out, group_out, aligned * shape.taps, shape.groups, false},
          {shape.batch_pixels_in, group_in, inner, shape.groups, false},
          {group_out, group_in * shape.taps, shape.batch_pixels_out, shape.groups, true}};
}

OpCost convolution_cost(const TracedOp& op, const char* name, const ConvolutionShape& shape,
                        double bytes, Gemm gemm) {
  OpCost cost{
      .name = name,
      .kind = shape.depthwise ? OpKind::depthwise : OpKind::convolution,
      .phase = op.phase,
      .flops = 2 * shape.batch_pixels_out * shape.out * shape.taps * shape.in / shape.groups,
      .bytes = bytes,
      .elements = gemm.rows * gemm.columns * gemm.groups};
  // Depthwise convolutions do not use tensor cores: they are memory-bound.
  if (!shape.depthwise) cost.gemm = gemm;
  return cost;
}

std::vector<OpCost> convolution_costs(const TracedOp& op, bool half) {
  const bool backward = op.name == "convolution_backward";
  const TracedTensor& input = op.inputs.at(backward ? 1 : 0);
  const TracedTensor& weight = op.inputs.at(backward ? 2 : 1);
  const TracedTensor& output = backward ? op.inputs.at(0) : op.outputs.at(0);
  // A transposed convolution computes the input gradient of an ordinary convolution whose input has
  // the shape of `output` and whose result has the shape of `input`. The input gradient of the
  // transposed convolution is the result of that ordinary convolution.
  const ConvolutionShape shape =
      op.transposed ? shape_of(output, input, weight) : shape_of(input, output, weight);
  ConvolutionProducts products = products_of(shape);
  if (op.transposed) std::swap(products.result, products.input_gradient);
  const double bytes = all_bytes({&input, &weight, &output}, half);
  std::vector<OpCost> costs;
  const auto add = [&](OpCost cost) {
    cost.input = input.sizes;
    cost.result = output.sizes;
    costs.push_back(std::move(cost));
  };
  if (!backward) {
    // BlurPool's filter already has the type of the activations.
    const bool is_filter = shape.depthwise && !weight.needs_gradient;
    if (half && !is_filter) costs.push_back(cast_cost(op, weight));
    add(convolution_cost(op, "convolution", shape, bytes, products.result));
    return costs;
  }
  const auto is_requested = [&](std::size_t i) {
    return op.outputs.size() > i && op.outputs[i].defined;
  };
  if (is_requested(0)) {
    add(convolution_cost(op, "convolution input gradient", shape, bytes, products.input_gradient));
  }
  if (is_requested(1)) {
    add(convolution_cost(op, "convolution weight gradient", shape, bytes,
                         products.weight_gradient));
    if (half) costs.push_back(cast_cost(op, weight));
  }
  return costs;
}

std::vector<OpCost> matmul_costs(const TracedOp& op, bool half) {
  const TracedTensor& output = op.outputs.at(0);
  OpCost cost{.name = op.name, .kind = OpKind::matmul, .phase = op.phase};
  std::vector<OpCost> costs;
  // The two factors come last: addmm(bias, a, b).
  const TracedTensor& a = op.inputs.at(op.inputs.size() - 2);
  const TracedTensor& b = op.inputs.at(op.inputs.size() - 1);
  const double inner = a.sizes.empty() ? 1 : static_cast<double>(a.sizes.back());
  cost.flops = 2 * output.elements() * inner;
  for (const TracedTensor& tensor : op.inputs) cost.bytes += bytes_of(tensor, half);
  cost.bytes += bytes_of(output, half);
  cost.elements = output.elements();
  const double columns = output.sizes.empty() ? 1 : static_cast<double>(output.sizes.back());
  cost.gemm = {output.elements() / columns, columns, inner, 1, !output.per_sample};
  if (half && op.phase == StepPhase::forward && !b.per_sample) costs.push_back(cast_cost(op, b));
  costs.push_back(cost);
  if (half && op.phase == StepPhase::backward && !output.per_sample)
    costs.push_back(cast_cost(op, output));
  return costs;
}

}  // namespace

double TracedTensor::elements() const {
  return std::accumulate(sizes.begin(), sizes.end(), 1., [](double product, std::int64_t size) {
    return product * static_cast<double>(size);
  });
}

std::string_view phase_name(StepPhase phase) {
  constexpr std::string_view kNames[] = {"forward", "backward", "update"};
  return kNames[static_cast<int>(phase)];
}

std::vector<OpCost> costs_of(const TracedOp& op, CostPrecision precision) {
  const OpRule rule = find_rule(op.name);
  const bool half = precision != CostPrecision::fp32;
  if (rule.kind == OpKind::convolution) return convolution_costs(op, half);
  if (rule.kind == OpKind::matmul) return matmul_costs(op, half);
  OpCost cost{.name = op.name, .kind = rule.kind, .phase = op.phase, .launches = rule.launches};
  // In bf16, libtorch computes batch norm with three native kernels: partial statistics, their
  // sum, the result.
  if (precision == CostPrecision::bf16 && op.name.find("batch_norm") != std::string::npos)
    cost.launches = 3;
  const auto bytes = [&](const TracedTensor& tensor) {
    return bytes_of(tensor, half && tensor.per_sample && rule.kind != OpKind::loss);
  };
  for (std::size_t i = 0; i < op.inputs.size(); ++i) {
    // The backward pass of a pool uses only the shape of the pool's input.
    if (rule.kind == OpKind::pool && op.phase == StepPhase::backward && i == 1) continue;
    const TracedTensor& tensor = op.inputs[i];
    cost.bytes += bytes(tensor) * (tensor.per_sample ? 1 + rule.rereads : 1);
  }
  for (const TracedTensor& tensor : op.outputs) {
    cost.bytes += bytes(tensor);
    if (tensor.defined) cost.elements = std::max(cost.elements, tensor.elements());
  }
  const bool backward = op.phase == StepPhase::backward;
  if ((rule.kind == OpKind::norm || rule.kind == OpKind::pool) && !op.inputs.empty() &&
      !op.outputs.empty()) {
    cost.input = (backward ? op.outputs : op.inputs)[0].sizes;
    cost.result = (backward ? op.inputs : op.outputs)[0].sizes;
    cost.integers = op.integers;
  }
  return {cost};
}

double seconds_on(const Card& card, const OpCost& cost, CostPrecision precision) {
  const double rate = precision == CostPrecision::fp32 ? card.fp32_flops : card.half_flops;
  double computing = 0;
  if (const Gemm& gemm = cost.gemm; gemm.rows > 0) {
    const double rows = round_up(gemm.rows, kTileRows);
    const double columns = round_up(gemm.columns, kTileColumns);
    computing = 2 * rows * columns * gemm.inner * gemm.groups / rate;
    const double tiles = rows / kTileRows * columns / kTileColumns * gemm.groups;
    // A multiprocessor works on two tiles of this size at the same time.
    const double waves = tiles / (2 * card.multiprocessors);
    if (!gemm.splits_inner) computing *= std::ceil(waves) / waves;
  }
  const double moving = cost.bytes / card.copy_bytes;
  return std::max(std::max(computing, moving) / kAchievedFraction,
                  cost.launches * kMinKernelSeconds);
}

}  // namespace precast::tools
