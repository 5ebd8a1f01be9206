#pragma once

#include <torch/version.h>

#include "framework/api/loss.h"
#include "framework/api/method.h"
#include "framework/api/metric.h"
#include "framework/api/model.h"
#include "framework/api/optimizer.h"
#include "framework/api/schedule.h"
#include "framework/core/plugin.h"

namespace precast {

/// The registries to which a train plug-in adds its parts. Parts for data belong in a data plug-in
/// (data/plugin.h).
struct TrainParts {
  ModelRegistry models{"model"};
  MethodRegistry methods{"method"};
  LossRegistry losses{"loss"};
  MetricRegistry metrics{"metric"};
  OptimizerRegistry optimizers{"optimizer"};
  ScheduleRegistry schedules{"schedule"};
};

}  // namespace precast

/// Makes the library a train plug-in. Write it once, outside any namespace:
///
///     void add_parts(precast::TrainParts& parts) {
///       parts.models.add("tiny", "two layers", make_tiny);
///     }
///     PRECAST_TRAIN_PLUGIN(add_parts)
///
/// The function is called once, with empty registries; if it throws, the plug-in is rejected.
#define PRECAST_TRAIN_PLUGIN(function) \
  PRECAST_PLUGIN_DESCRIPTOR("train", ::precast::TrainParts, TORCH_VERSION, function)
