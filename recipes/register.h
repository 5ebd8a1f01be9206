#pragma once

#include "framework/api/loss.h"
#include "framework/api/method.h"
#include "framework/api/metric.h"
#include "framework/api/optimizer.h"
#include "framework/api/schedule.h"
#include "framework/core/export.h"

namespace precast::recipes {

/// Adds all methods of README.md's table.
PRECAST_API void register_methods(MethodRegistry& registry);
/// Adds all metrics of README.md's table.
PRECAST_API void register_metrics(MetricRegistry& registry);
/// Adds all losses of README.md's table.
PRECAST_API void register_losses(LossRegistry& registry);
/// Adds sgd, sgdw, adamw, lars and lamb.
PRECAST_API void register_optimizers(OptimizerRegistry& registry);
/// Adds cyclic, step, cosine, poly, one_cycle and constant.
PRECAST_API void register_schedules(ScheduleRegistry& registry);

}  // namespace precast::recipes
