#include "tests/recipes/recipe_golden.h"

#include <gtest/gtest.h>

#include <fstream>
#include <string>

#include "tests/support/paths.h"

namespace precast::test {
namespace {

nlohmann::json read(const std::string& name) {
  return nlohmann::json::parse(std::ifstream(test::golden_dir() + "/" + name));
}

}  // namespace

const nlohmann::json& recipe_golden() {
  static const nlohmann::json golden = read("torchvision/recipes.json");
  return golden;
}

const nlohmann::json& optimizer_golden() {
  static const nlohmann::json golden = read("recipes/optimizers.json");
  return golden;
}

const nlohmann::json& method_golden() {
  static const nlohmann::json golden = read("recipes/methods.json");
  return golden;
}

const nlohmann::json& schedule_golden() {
  static const nlohmann::json golden = read("recipes/schedules.json");
  return golden;
}

void expect_near(const std::vector<double>& actual, const nlohmann::json& golden,
                 double tolerance) {
  const auto expected = golden.get<std::vector<double>>();
  ASSERT_EQ(actual.size(), expected.size());
  for (std::size_t i = 0; i < actual.size(); ++i)
    EXPECT_NEAR(actual[i], expected[i], tolerance) << i;
}

}  // namespace precast::test
