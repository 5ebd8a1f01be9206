#include "framework/engine/step_graph.h"

namespace precast::engine {
namespace {

constexpr std::int64_t kSmallBatch = 96;
constexpr std::int64_t kSmallBatchSizePx = 160;

}  // namespace

bool can_capture(GraphMode mode, const TrainPlan& plan, at::Device device, int world) {
  if (mode == GraphMode::off || !device.is_cuda() || world > 1) return false;
  return mode == GraphMode::on || plan.precision != Precision::fp32;
}

bool worth_capturing(GraphMode mode, std::int64_t samples, std::int64_t size_px) {
  if (mode != GraphMode::automatic) return mode == GraphMode::on;
  return samples * size_px * size_px < kSmallBatch * kSmallBatchSizePx * kSmallBatchSizePx;
}

}  // namespace precast::engine
