#include "tools/bench/cost/step_cost.h"

#include <map>
#include <utility>

namespace precast::tools {

using nlohmann::ordered_json;

StepCost reference_cost(const std::vector<TracedOp>& ops, CostPrecision precision) {
  StepCost cost;
  for (const TracedOp& op : ops) {
    for (OpCost& one : costs_of(op, precision)) cost.push_back(std::move(one));
  }
  return cost;
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
  return ranks > 1 ? seconds / kNodeEfficiency : seconds;
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
