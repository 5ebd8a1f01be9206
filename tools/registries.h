#pragma once

#include "data/order/order.h"
#include "data/transforms/register.h"
#include "framework/api/loss.h"
#include "framework/api/method.h"
#include "framework/api/model.h"
#include "framework/api/optimizer.h"
#include "framework/api/schedule.h"

namespace precast::tools {

/// All parts that a recipe can name.
struct Registries {
  ModelRegistry models{"model"};
  MethodRegistry methods{"method"};
  LossRegistry losses{"loss"};
  OptimizerRegistry optimizers{"optimizer"};
  ScheduleRegistry schedules{"schedule"};
  data::TransformRegistries pipeline;
  data::OrderRegistry orders{"order"};
};

/// The parts that come with precast.
[[nodiscard]] Registries make_registries();

}  // namespace precast::tools
