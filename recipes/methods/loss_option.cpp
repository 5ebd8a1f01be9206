#include "recipes/methods/loss_option.h"

#include <fmt/format.h>

#include "framework/core/config/value.h"
#include "framework/core/error.h"

namespace precast::recipes {
namespace {

template <typename Value>
void set_option(TrainPlan& plan, const std::string& method, const std::string& option,
                Value value) {
  const ConfigNode* const given = plan.loss.options.find(option);
  Value recipes{};
  if (given != nullptr && (!read_value(*given, &recipes) || recipes != value)) {
    const std::string set_by =
        given->origin.source.empty() ? "which another method sets" : given->origin.text();
    throw ConfigError(
        fmt::format("method {}: expected a recipe without loss.{}, or with the method's value {}, "
                    "got {} ({}). Remove the key or the method",
                    method, option, value, given->text(), set_by));
  }
  plan.loss.set(option, fmt::format("{}", value));
}

}  // namespace

void set_loss_option(TrainPlan& plan, const std::string& method, const std::string& option,
                     bool value) {
  set_option(plan, method, option, value);
}

void set_loss_option(TrainPlan& plan, const std::string& method, const std::string& option,
                     double value) {
  set_option(plan, method, option, value);
}

}  // namespace precast::recipes
