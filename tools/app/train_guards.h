#pragma once

#include <memory>
#include <string>

#include "framework/api/plugin.h"
#include "tools/plugins/plugin_parts.h"

namespace precast::tools {

/// Parts of train plug-ins (for adopt()): what their members throw names them and their plug-in. A
/// member that is added to an interface is added here, too. What a StepStrategy throws passes: the
/// engine's own passes run within it.
struct TrainGuards {
  /// As rethrow_from_plugin. Errors of libtorch keep their types once training runs, and where they
  /// tell of memory or of ranks, with `what` added.
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
