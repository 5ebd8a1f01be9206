#include "framework/api/method.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>

namespace precast {
namespace {

/// Checks a rule of `method` against the other method to which the rule refers. @param position
/// index of `method` in the recipe. @param other index of the other method. @return a message if
/// the recipe breaks the rule; otherwise nothing.
std::optional<std::string> violation(const NamedMethod& method, const MethodRule& rule,
                                     std::ptrdiff_t position, std::ptrdiff_t other) {
  if (rule.kind == MethodRule::Kind::not_with) {
    return fmt::format("{} with {}: expected only one of the two: {}", method.name, rule.other,
                       rule.reason);
  }
  if (other < position) return std::nullopt;
  return fmt::format("{} before {}: expected the opposite order: {}", method.name, rule.other,
                     rule.reason);
}

}  // namespace

std::vector<std::string> broken_rules(const std::vector<NamedMethod>& methods) {
  std::vector<std::string> broken;
  const NamedMethod* replaces = nullptr;
  for (const NamedMethod& method : methods) {
    const auto position = &method - methods.data();
    for (const MethodRule& rule : method.method->rules()) {
      const auto other = std::ranges::find(methods, rule.other, &NamedMethod::name);
      if (other == methods.end()) continue;
      if (auto message = violation(method, rule, position, other - methods.begin()))
        broken.push_back(std::move(*message));
    }
    if (method.method->step_strategy() == nullptr) continue;
    if (replaces != nullptr) {
      broken.push_back(
          fmt::format("{} with {}: expected only one of the two: each replaces the step",
                      replaces->name, method.name));
    }
    replaces = &method;
  }
  return broken;
}

}  // namespace precast
