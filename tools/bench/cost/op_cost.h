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
  /// Whether its size grows with the batch, as that of activations, their gradients and images
  /// does.
  bool per_sample = false;
  /// False for an optional tensor that was not given or not requested.
  bool defined = true;

  [[nodiscard]] double elements() const;
};

enum class StepPhase { forward, backward, update };
[[nodiscard]] std::string_view phase_name(StepPhase phase);

/// One call of an op that OpRule counts.
struct TracedOp {
  /// The name that find_rule() takes.
  std::string name{};
  StepPhase phase = StepPhase::forward;
  /// In the order of the arguments; the tensors of lists one after the other.
  std::vector<TracedTensor> inputs{};
  /// Results; for ops without results, the arguments that they change.
  std::vector<TracedTensor> outputs{};
  /// The elements of its lists of integers: a pool's kernel, stride, padding and dilation.
  std::vector<std::int64_t> integers{};
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
  /// The sum over `inner` is divided among multiprocessors (weight gradients), so that few rows
  /// and columns still fill the card.
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
  /// Size of the largest result, in elements; what FusedBlocks matches.
  double elements = 0;
  Gemm gemm{};
  /// Of norms, pools and depthwise convolutions: the sizes [N, C, ...] of the input and of the
  /// result in the forward pass, also for the gradients.
  std::vector<std::int64_t> input{};
  std::vector<std::int64_t> result{};
  /// Those of the TracedOp.
  std::vector<std::int64_t> integers{};
};

/// The costs of an op in eager PyTorch with channels_last tensors and autocast. A convolution's
/// backward pass is two kernels and therefore two costs. In half precision, convolutions and matrix
/// products of parameters also cost the casts of the weights and of their gradients.
[[nodiscard]] std::vector<OpCost> costs_of(const TracedOp& op, CostPrecision precision);

/// Seconds on a card: the longer of computing at the measured rate of products, padded to tiles and
/// to whole waves of tiles, and of moving bytes at the measured rate of copies; both divided by
/// kReachedShare. At least kKernelSeconds per launch.
[[nodiscard]] double seconds_on(const Card& card, const OpCost& cost, CostPrecision precision);

}  // namespace precast::tools
