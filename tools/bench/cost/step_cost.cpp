#include "tools/bench/cost/step_cost.h"

#include <map>
#include <utility>

namespace precast::tools {
namespace {

using nlohmann::ordered_json;

/// Rewrites the costs of norm, add, ReLU one after the other.
class FusedBlocks {
 public:
  explicit FusedBlocks(StepCost cost) : cost_(std::move(cost)) {}

  StepCost run() {
    for (OpCost& op : cost_) {
      if (op.phase == StepPhase::forward) {
        forward(op);
      } else if (op.phase == StepPhase::backward) {
        backward(op);
      }
      if (counts(op)) previous_ = &op;
    }
    return std::move(cost_);
  }

 private:
  struct Relu {
    bool fused = false;
    bool ends_block = false;
  };

  /// Counters, casts of weights and gradients of weights do not come between two ops on
  /// activations.
  static bool counts(const OpCost& op) {
    return op.elements > 1 && op.kind != OpKind::cast && !op.gemm.splits_inner;
  }

  [[nodiscard]] bool follows(OpKind kind, const OpCost& op) const {
    return previous_ != nullptr && previous_->kind == kind && previous_->elements == op.elements;
  }

  void forward(OpCost& op) {
    if (op.kind == OpKind::norm) op.launches = 2;
    const bool is_add = op.kind == OpKind::add && op.name == "add_";
    if (is_add && follows(OpKind::norm, op)) {
      // The second pass of the norm also reads the shortcut.
      op.bytes /= 3;
      op.launches = 0;
      fused_add_ = &op;
    }
    if (!is_relu(op)) return;
    Relu relu;
    relu.ends_block = fused_add_ != nullptr && previous_ == fused_add_;
    relu.fused = follows(OpKind::norm, op) || (relu.ends_block && follows(OpKind::add, op));
    relus_.push_back(relu);
    if (!relu.fused) return;
    op.bytes = relu.ends_block ? op.elements / 8 : 0;
    op.launches = 0;
  }

  void backward(OpCost& op) {
    if (op.kind == OpKind::norm) op.launches = 2;
    if (op.name == "threshold_backward" && !relus_.empty()) {
      const Relu relu = relus_.back();
      relus_.pop_back();
      if (!relu.fused) return;
      // At the end of a block, the masked gradient is written for the shortcut.
      op.bytes = relu.ends_block ? op.bytes / 3 + op.elements / 8 : 0;
      op.launches = 0;
    }
    if (op.kind == OpKind::add && follows(OpKind::convolution, op)) {
      op.bytes /= 3;
      op.launches = 0;
    }
  }

  static bool is_relu(const OpCost& op) { return op.name == "relu" || op.name == "relu_"; }

  StepCost cost_;
  const OpCost* previous_ = nullptr;
  const OpCost* fused_add_ = nullptr;
  /// The forward pass's, which the backward pass meets in reverse.
  std::vector<Relu> relus_;
};

}  // namespace

StepCost reference_cost(const std::vector<TracedOp>& ops, CostPrecision precision) {
  StepCost cost;
  for (const TracedOp& op : ops) {
    for (OpCost& one : costs_of(op, precision)) cost.push_back(std::move(one));
  }
  return cost;
}

StepCost fused_cost(const StepCost& reference) {
  return FusedBlocks(reference).run();
}

CostTotal total_of(const StepCost& cost) {
  CostTotal total;
  for (const OpCost& op : cost) {
    total.flops += op.flops;
    total.bytes += op.bytes;
    total.launches += op.launches;
  }
  return total;
}

double step_seconds(const Card& card, const StepCost& cost, CostPrecision precision, int ranks) {
  double seconds = 0;
  for (const OpCost& op : cost) seconds += seconds_on(card, op, precision);
  return ranks > 1 ? seconds / kNodeShare : seconds;
}

ordered_json describe_cost(const StepCost& cost, CostPrecision precision,
                           const std::vector<const Card*>& cards, int ranks, double images) {
  struct Sum {
    CostTotal total;
    int calls = 0;
  };
  std::map<std::pair<OpKind, StepPhase>, Sum> sums;
  for (const OpCost& op : cost) {
    Sum& sum = sums[{op.kind, op.phase}];
    ++sum.calls;
    sum.total.flops += op.flops;
    sum.total.bytes += op.bytes;
    sum.total.launches += op.launches;
  }
  const CostTotal total = total_of(cost);
  ordered_json json = {{"flops", total.flops},
                       {"bytes", total.bytes},
                       {"launches", total.launches},
                       {"kinds", ordered_json::array()},
                       {"cards", ordered_json::array()}};
  for (const auto& [key, sum] : sums) {
    json["kinds"].push_back({{"kind", kind_name(key.first)},
                             {"phase", phase_name(key.second)},
                             {"calls", sum.calls},
                             {"flops", sum.total.flops},
                             {"bytes", sum.total.bytes},
                             {"launches", sum.total.launches}});
  }
  for (const Card* card : cards) {
    std::map<std::pair<OpKind, StepPhase>, double> seconds;
    double all = 0;
    for (const OpCost& op : cost) {
      const double own = seconds_on(*card, op, precision);
      seconds[{op.kind, op.phase}] += own;
      all += own;
    }
    auto shares = ordered_json::array();
    for (const auto& [key, own] : seconds) shares.push_back(own / all);
    const double step = step_seconds(*card, cost, precision, ranks);
    json["cards"].push_back({{"card", card->name},
                             {"checked", is_checked(*card)},
                             {"ms", step * 1e3},
                             {"images_per_second", images / step},
                             {"shares", shares}});
  }
  return json;
}

ordered_json describe_ops(const StepCost& cost) {
  auto ops = ordered_json::array();
  for (const OpCost& op : cost) {
    ops.push_back({{"name", op.name},
                   {"kind", kind_name(op.kind)},
                   {"phase", phase_name(op.phase)},
                   {"flops", op.flops},
                   {"bytes", op.bytes},
                   {"launches", op.launches}});
  }
  return ops;
}

}  // namespace precast::tools
