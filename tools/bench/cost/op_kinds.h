#pragma once

#include <string>
#include <string_view>

namespace precast::tools {

/// The computation of a libtorch op. `view` moves no bytes itself, and `composite` consists of
/// other ops; ops that these call are counted.
enum class OpKind {
  convolution,
  depthwise,
  matmul,
  norm,
  activation,
  add,
  pool,
  pointwise,
  reduction,
  loss,
  cast,
  optimizer,
  view,
  composite,
};

[[nodiscard]] std::string_view kind_name(OpKind kind);

/// How an op is counted.
struct OpRule {
  OpKind kind = OpKind::composite;
  /// How often it reads its activations again after the first time. Batch norm: 1, because it reads
  /// its input once for the statistics and once more to apply them.
  int rereads = 0;
  /// Number of kernels.
  int launches = 1;
};

/// @param name without namespace and overload: `native_batch_norm`.
/// @return a rule of kind `composite` for unknown names.
[[nodiscard]] OpRule find_rule(const std::string& name);

}  // namespace precast::tools
