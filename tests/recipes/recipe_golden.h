#pragma once

#include <nlohmann/json.hpp>

namespace precast::test {

/// tests/golden/torchvision/recipes.json: what torch and numpy compute for the parts of a recipe.
[[nodiscard]] const nlohmann::json& recipe_golden();

}  // namespace precast::test
