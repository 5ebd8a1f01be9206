#pragma once

#include <vector>

#include "framework/api/communicator.h"
#include "framework/api/grad_sync.h"
#include "framework/api/loss.h"
#include "framework/api/method.h"
#include "framework/api/model.h"
#include "framework/api/optimizer.h"

namespace precast::engine {

/// The objects that a step uses. All are borrowed.
struct StepParts {
  Model& model;
  const Loss& loss;
  Optimizer& optimizer;
  const std::vector<NamedMethod>& methods;
  Communicator& ranks;
  GradSync& sync;
};

}  // namespace precast::engine
