#include "tests/recipes/recipe_golden.h"

#include <fstream>

namespace precast::test {

const nlohmann::json& recipe_golden() {
  static const nlohmann::json golden =
      nlohmann::json::parse(std::ifstream(PRECAST_GOLDEN_DIR "/torchvision/recipes.json"));
  return golden;
}

}  // namespace precast::test
