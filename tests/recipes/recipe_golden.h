#pragma once

#include <nlohmann/json.hpp>
#include <vector>

namespace precast::test {

/// tests/golden/torchvision/recipes.json: results of torch and numpy for the parts of a recipe.
[[nodiscard]] const nlohmann::json& recipe_golden();
/// tests/golden/recipes/optimizers.json: optimisers and averages of torch, timm and Composer.
[[nodiscard]] const nlohmann::json& optimizer_golden();
/// tests/golden/recipes/methods.json: methods and losses of Composer, timm and torchvision.
[[nodiscard]] const nlohmann::json& method_golden();
/// tests/golden/recipes/schedules.json: the rates that torch's schedulers set, step by step.
[[nodiscard]] const nlohmann::json& schedule_golden();

/// Adds a test failure for each number that differs from the golden's by more than `tolerance`.
void expect_near(const std::vector<double>& actual, const nlohmann::json& golden,
                 double tolerance = 1e-6);

}  // namespace precast::test
