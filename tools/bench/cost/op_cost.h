#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "tools/bench/cost/cards.h"
#include "tools/bench/cost/op_kinds.h"

namespace precast::tools {

/// A tensor that an op reads or writes.
struct TracedTensor {
  /// An expanded dimension (stride 0) counts as 1. Empty: a scalar.
  std::vector<std::int64_t> sizes{};
  /// Size of an element as traced: 4 for float, 8 for int64.
  int element_bytes = 4;
  bool is_float = true;
  /// Whether the size depends on the batch size: true for images, activations and their gradients.
  bool per_sample = false;
  /// Whether autograd computes its gradient. For a convolution's backward pass, TracedOp::outputs
  /// shows which gradients are computed.
  bool needs_gradient = false;
  /// False for an optional tensor that was not given or not requested.
  bool defined = true;

  [[nodiscard]] double elements() const;
};

enum class StepPhase { forward, backward, update };
[[nodiscard]] std::string_view phase_name(StepPhase phase);

/// One call of an op that OpRule counts.
struct TracedOp {
  /// Without namespace and overload, as find_rule() expects it.
  std::string name{};
  StepPhase phase = StepPhase::forward;
  /// The tensors among the arguments, in order; a list contributes each of its tensors.
  std::vector<TracedTensor> inputs{};
  /// Results; for ops without results, the arguments that they change.
  std::vector<TracedTensor> outputs{};
  /// The elements of its integer lists, such as a pool's kernel, stride, padding and dilation.
  std::vector<std::int64_t> integers{};
  /// For convolutions: whether it is a transposed convolution.
  bool transposed = false;
};

/// The type in which floating-point activations are stored. Parameters, statistics and losses are
/// fp32.
enum class CostPrecision { fp32, fp16, bf16 };

/// A matrix product that a kernel computes: [rows, inner] x [inner, columns], `groups` times.
struct Gemm {
  double rows = 0;
  double columns = 0;
  double inner = 0;
  double groups = 1;
  /// Whether the sum over `inner` is divided among multiprocessors (split-K, for weight gradients),
  /// so that a product with few rows and columns also uses all multiprocessors.
  bool splits_inner = false;
};

/// The work of one kernel, or of a few kernels of the same kind.
struct OpCost {
  std::string name{};
  OpKind kind = OpKind::pointwise;
  StepPhase phase = StepPhase::forward;
  /// Multiplications and additions of matrix products and convolutions: 2 for each
  /// multiply-accumulate. Elementwise arithmetic is not counted: its kernels are memory-bound.
  double flops = 0;
  /// Bytes to and from the card's memory, without regard to caches.
  double bytes = 0;
  int launches = 1;
  /// Number of elements of the largest result. fused_cost() compares it to find consecutive ops
  /// that work on the same activations.
  double elements = 0;
  Gemm gemm{};
  /// For norms, pools and convolutions: the sizes [N, C, ...] of the input and of the result in the
  /// forward pass. The ops of the backward pass have the same values.
  std::vector<std::int64_t> input{};
  std::vector<std::int64_t> result{};
  /// For norms and pools: TracedOp::integers.
  std::vector<std::int64_t> integers{};
};

/// The costs of an op in eager PyTorch with channels_last tensors and autocast. A convolution's
/// backward pass has a kernel, and therefore a cost, for each gradient that is needed: input and
/// weight. In half precision, convolutions and matrix products of parameters also cost the casts of
/// the weights and of their gradients. A depthwise convolution whose weight needs no gradient is
/// assumed to be BlurPool's filter, which is stored in the type of the activations.
[[nodiscard]] std::vector<OpCost> costs_of(const TracedOp& op, CostPrecision precision);

/// Returns the seconds on a card: the longer of two times, divided by kAchievedFraction, but at
/// least kMinKernelSeconds per launch. The first is the time for the product at the measured rate
/// of products, padded to tiles and, unless Gemm::splits_inner, to complete waves of tiles. The
/// second is the time for the bytes at the measured rate of copies.
[[nodiscard]] double seconds_on(const Card& card, const OpCost& cost, CostPrecision precision);

}  // namespace precast::tools
