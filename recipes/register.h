#pragma once

#include "framework/api/loss.h"
#include "framework/api/method.h"
#include "framework/api/metric.h"
#include "framework/api/optimizer.h"
#include "framework/api/schedule.h"
#include "framework/core/export.h"

namespace precast::recipes {

/// All of README.md's table.
PRECAST_API void register_methods(MethodRegistry& registry);
/// top_k.
PRECAST_API void register_metrics(MetricRegistry& registry);
/// cross_entropy, bce.
PRECAST_API void register_losses(LossRegistry& registry);
/// sgd, sgdw, adamw, lars, lamb.
PRECAST_API void register_optimizers(OptimizerRegistry& registry);
/// cyclic, step, cosine, poly, one_cycle, constant.
PRECAST_API void register_schedules(ScheduleRegistry& registry);

}  // namespace precast::recipes
