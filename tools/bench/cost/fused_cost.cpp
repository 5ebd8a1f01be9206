#include <algorithm>
#include <array>
#include <utility>
#include <vector>

#include "models/cuda/bytes_moved.h"
#include "tools/bench/cost/step_cost.h"

namespace precast::tools {
namespace {

using Sizes = std::vector<std::int64_t>;

/// A call of BlurPool's filter. A call that computes all pixels of an image and a call that
/// computes only the even pixels of the same image become one op.
struct Blur {
  bool even = false;
  bool shared = false;
};

/// Where one fused op replaces several ops, assigns its cost to one of them, and sets the bytes and
/// launches of the other ops to 0:
///   replaced ops                      op that gets the cost
///   norm, with an in-place addition   the norm; in the backward pass too, where the fused op also
///   and a ReLU if they follow         adds the gradients of a block's two branches
///   the norms of a block's branch     the norm of the branch
///   and of its projected shortcut
///   max pool, 3 x 3 with stride 2     the pool, with indices of one byte; after a norm and a ReLU,
///                                     the norm
///   BlurPool's filter                 the filter, which runs once for the two convolutions that
///                                     read the result of a block
class FusedOps {
 public:
  FusedOps(StepCost cost, FloatType type)
      : cost_(std::move(cost)), is_blur_(find_blurs(cost_)), type_(type) {}

  StepCost run() {
    for (std::size_t i = 0; i < cost_.size(); ++i) {
      OpCost& op = cost_[i];
      if (op.phase == StepPhase::forward) {
        forward(op, is_blur_[i]);
      } else if (op.phase == StepPhase::backward) {
        backward(op, is_blur_[i]);
      }
      if (is_relevant(op)) previous_ = &op;
    }
    return std::move(cost_);
  }

 private:
  struct Norm {
    OpCost* op = nullptr;
    bool fused = false;
    bool residual = false;
    /// Whether two branches read its result. Its gradient is then the sum of two gradients.
    bool forked = false;
    /// Whether it is fused with a max pool.
    bool pooled = false;
    /// Whether the op before it is another norm, possibly that of a shortcut.
    bool after_norm = false;
    /// Whether it is fused with the norm of the shortcut.
    bool dual = false;
    /// Whether it is the norm of a shortcut, fused with the norm of the branch.
    bool of_shortcut = false;
  };
  struct Relu {
    bool fused = false;
    /// Index of its norm in norms_.
    std::size_t norm = 0;
  };

  /// Whether follows() considers the op. Counters, casts of weights and gradients of weights may
  /// run between two ops on activations and are ignored.
  static bool is_relevant(const OpCost& op) {
    return op.elements > 1 && op.kind != OpKind::cast && !op.gemm.splits_inner;
  }
  static bool is_relu(const OpCost& op) { return op.name == "relu" || op.name == "relu_"; }
  static bool is_fused_pool(const OpCost& op) {
    constexpr std::array<std::int64_t, 6> kWindow{3, 3, 2, 2, 1, 1};
    if (!op.name.starts_with("max_pool2d_with_indices") || op.input.size() != 4) return false;
    // The values of `integers` after the window are the dilation: one or two values.
    const auto [other, rest] = std::ranges::mismatch(op.integers, kWindow);
    return rest == kWindow.end() &&
           std::all_of(other, op.integers.end(), [](auto dilation) { return dilation == 1; });
  }

  /// Marks BlurPool's filters: depthwise convolutions without a weight gradient. The backward pass
  /// visits the convolutions of the forward pass in reverse order.
  static std::vector<bool> find_blurs(const StepCost& cost) {
    std::vector<bool> is_blur(cost.size());
    std::vector<std::size_t> open;
    const auto is_gradient = [&](std::size_t i, const char* name) {
      return i < cost.size() && cost[i].kind == OpKind::depthwise && cost[i].name == name;
    };
    for (std::size_t i = 0; i < cost.size(); ++i) {
      if (cost[i].kind != OpKind::depthwise) continue;
      if (cost[i].phase == StepPhase::forward) {
        open.push_back(i);
        continue;
      }
      const bool of_input = is_gradient(i, "convolution input gradient");
      const bool also_of_input =
          !of_input && i > 0 && is_gradient(i - 1, "convolution input gradient");
      if (also_of_input || open.empty()) continue;
      if (of_input && !is_gradient(i + 1, "convolution weight gradient") && can_blur(cost[i]))
        is_blur[i] = is_blur[open.back()] = true;
      open.pop_back();
    }
    return is_blur;
  }
  static bool can_blur(const OpCost& op) {
    return op.input.size() == 4 && (op.result == op.input || op.result == halved(op.input));
  }
  static Sizes halved(const Sizes& sizes) {
    return {sizes[0], sizes[1], (sizes[2] + 1) / 2, (sizes[3] + 1) / 2};
  }

  template <typename Shape>
  [[nodiscard]] Shape shape_of(const OpCost& op) const {
    return {op.input[0], static_cast<int>(op.input[2]), static_cast<int>(op.input[3]),
            static_cast<int>(op.input[1]), type_};
  }
  [[nodiscard]] models::MaxPoolShape pool_shape(const OpCost& op) const {
    return shape_of<models::MaxPoolShape>(op);
  }
  [[nodiscard]] models::BatchNormShape norm_shape(const OpCost& op) const {
    return {op.input[0] * op.input[2] * op.input[3], static_cast<int>(op.input[1]), type_};
  }

  static void set(OpCost& op, std::size_t bytes, int launches) {
    op.bytes = static_cast<double>(bytes);
    op.launches = launches;
  }
  static void drop(OpCost& op) { set(op, 0, 0); }

  [[nodiscard]] bool follows(OpKind kind, const OpCost& op) const {
    return previous_ != nullptr && previous_->kind == kind && previous_->elements == op.elements;
  }

  void forward(OpCost& op, bool is_blur) {
    if (op.kind == OpKind::norm) forward_norm(op);
    if (op.name == "add_" && follows(OpKind::norm, op)) add_ = &op;
    if (is_relu(op)) forward_relu(op);
    if (is_fused_pool(op)) forward_pool(op);
    if (is_blur) forward_blur(op);
  }

  /// Three kernels: partial sums, their total (a small kernel), and the normalisation.
  void set_forward(const Norm& norm) const {
    set(*norm.op, models::batch_norm_forward_bytes(norm_shape(*norm.op), norm.residual), 3);
  }
  void forward_norm(OpCost& op) {
    norms_.push_back(
        {.op = &op, .fused = op.input.size() == 4, .after_norm = follows(OpKind::norm, op)});
    if (norms_.back().fused) set_forward(norms_.back());
  }

  void forward_relu(OpCost& op) {
    const bool residual = add_ != nullptr && previous_ == add_ && follows(OpKind::add, op);
    const bool fused =
        !norms_.empty() && (residual || follows(OpKind::norm, op)) && norms_.back().fused;
    relus_.push_back({fused, norms_.size() - 1});
    if (!fused) return;
    Norm& norm = norms_.back();
    norm.residual = residual;
    set_forward(norm);
    drop(op);
    if (!residual) return;
    drop(*add_);
    block_end_ = &op;
    if (!norm.after_norm) return;
    Norm& shortcut = norms_.at(norms_.size() - 2);
    norm.dual = shortcut.of_shortcut = true;
    set(*norm.op, models::dual_norm_forward_bytes(norm_shape(*norm.op)), 5);
    drop(*shortcut.op);
  }

  void forward_pool(OpCost& op) {
    const bool after_norm = previous_ != nullptr && is_relu(*previous_) && !relus_.empty() &&
                            relus_.back().fused && !norms_.at(relus_.back().norm).residual;
    if (after_norm) {
      Norm& norm = norms_.at(relus_.back().norm);
      norm.pooled = true;
      set(*norm.op, models::norm_pool_forward_bytes(pool_shape(op)), 3);
      drop(op);
    } else {
      set(op, models::max_pool_bytes(pool_shape(op)), 1);
    }
    pooled_.push_back(after_norm);
    block_end_ = &op;
  }

  void forward_blur(OpCost& op) {
    const bool even = op.result != op.input;
    const bool shared = even && shared_blur_ != nullptr && shared_blur_->input == op.input;
    blurs_.push_back({even, shared});
    if (!even) {
      // A blur of a block's result: the shortcut of the next block may need its even pixels.
      const bool first = previous_ != nullptr && previous_ == block_end_;
      shared_blur_ = first ? &op : nullptr;
      shared_blur_index_ = blurs_.size() - 1;
    }
    set(op, blur_bytes(op, !even, even), 1);
    if (!shared) return;
    set(*shared_blur_, blur_bytes(op, true, true), 1);
    drop(op);
    blurs_[shared_blur_index_].shared = true;
    shared_blur_ = nullptr;
  }
  [[nodiscard]] std::size_t blur_bytes(const OpCost& op, bool all, bool even) const {
    return models::blur_bytes(shape_of<models::BlurShape>(op), all, even);
  }

  void backward(OpCost& op, bool is_blur) {
    if (op.name == "threshold_backward" && !relus_.empty()) {
      const Relu relu = relus_.back();
      relus_.pop_back();
      if (relu.fused) {
        Norm& norm = norms_.at(relu.norm);
        norm.forked = norm.residual && absorb_sum(op);
        drop(op);
      }
    } else if (op.kind == OpKind::norm && !norms_.empty()) {
      const Norm norm = norms_.back();
      norms_.pop_back();
      if (norm.dual) {
        set(op, models::dual_norm_backward_bytes(norm_shape(op), norm.forked), 4);
      } else if (norm.of_shortcut) {
        drop(op);
      } else if (norm.pooled) {
        set(op, models::norm_pool_backward_bytes(pool_shape(op), pool_is_forked_), 3);
      } else if (norm.fused) {
        set(op, models::batch_norm_backward_bytes(norm_shape(op), norm.residual, norm.forked), 3);
      }
    } else if (is_fused_pool(op) && !pooled_.empty()) {
      backward_pool(op);
    } else if (is_blur) {
      backward_blur(op);
    } else if (op.kind == OpKind::add) {
      if (follows(OpKind::convolution, op)) sum_ = &op;
      if (previous_ != nullptr && previous_ == both_gradients_) drop(op);
    }
  }

  void backward_pool(OpCost& op) {
    const bool with_norm = pooled_.back();
    pooled_.pop_back();
    pool_is_forked_ = absorb_sum(op);
    if (with_norm)
      drop(op);
    else
      set(op, models::max_pool_bytes(pool_shape(op), pool_is_forked_), 1);
  }

  /// If the previous op adds two gradients for this op, moves the addition into this op: the cost
  /// of the previous op becomes 0. @return whether the addition was moved.
  bool absorb_sum(const OpCost& op) {
    double result = 1;
    for (const std::int64_t size : op.result) result *= static_cast<double>(size);
    const double elements = op.result.empty() ? op.elements : result;
    if (sum_ == nullptr || previous_ != sum_ || sum_->elements != elements) return false;
    drop(*sum_);
    return true;
  }

  void backward_blur(OpCost& op) {
    if (blurs_.empty()) return;
    const Blur blur = blurs_.back();
    blurs_.pop_back();
    if (!blur.shared) {
      set(op, blur_bytes(op, !blur.even, blur.even), 1);
    } else if (blur.even) {
      drop(op);
    } else {
      set(op, blur_bytes(op, true, true), 1);
      both_gradients_ = &op;
    }
  }

  StepCost cost_;
  std::vector<bool> is_blur_;
  FloatType type_;
  const OpCost* previous_ = nullptr;
  OpCost* add_ = nullptr;
  const OpCost* block_end_ = nullptr;
  OpCost* shared_blur_ = nullptr;
  std::size_t shared_blur_index_ = 0;
  OpCost* sum_ = nullptr;
  const OpCost* both_gradients_ = nullptr;
  /// Whether the gradient of the last pool that the backward pass visited is the sum of two
  /// gradients.
  bool pool_is_forked_ = false;
  // Ops of the forward pass, in order. The backward pass visits them in reverse order.
  std::vector<Norm> norms_;
  std::vector<Relu> relus_;
  std::vector<Blur> blurs_;
  /// For each max pool, whether it is fused with the norm before it.
  std::vector<bool> pooled_;
};

}  // namespace

StepCost fused_cost(const StepCost& reference, CostPrecision precision) {
  const FloatType type = precision == CostPrecision::fp32 ? FloatType::f32 : FloatType::f16;
  return FusedOps(reference, type).run();
}

}  // namespace precast::tools
