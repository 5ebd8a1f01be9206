#pragma once

#include <memory>
#include <string>

#include "framework/api/plugin.h"
#include "tools/plugins/plugin_parts.h"

namespace precast::tools {

/// Guards for the parts of train plug-ins (for adopt()): an error that a member throws names the
/// part and its plug-in. The test `guards_forward` fails if a guard does not forward a virtual
/// function. Errors of a StepStrategy pass unchanged, because the engine's own passes run inside
/// it.
struct TrainGuards {
  /// Like rethrow_from_plugin(), except for libtorch's errors. During training, they keep their
  /// types; errors about memory or ranks always keep them. `what` is added to the message.
  [[noreturn]] static void rethrow(const std::string& what, ExitCode otherwise);
  static std::unique_ptr<Model> guarded(std::unique_ptr<Model> model, std::string where);
  static std::unique_ptr<Method> guarded(std::unique_ptr<Method> method, std::string where);
  static std::unique_ptr<Loss> guarded(std::unique_ptr<Loss> loss, std::string where);
  static std::unique_ptr<Metric> guarded(std::unique_ptr<Metric> metric, std::string where);
  static std::unique_ptr<Optimizer> guarded(std::unique_ptr<Optimizer> optimizer,
                                            std::string where);
  static std::unique_ptr<Schedule> guarded(std::unique_ptr<Schedule> schedule, std::string where);
};

}  // namespace precast::tools
