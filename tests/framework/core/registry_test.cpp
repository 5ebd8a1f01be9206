#include "framework/core/registry.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <stdexcept>
#include <string>

#include "tests/support/message_matchers.h"

namespace precast {
namespace {

using test::Names;

struct Shape {
  virtual ~Shape() = default;
  [[nodiscard]] virtual double area() const = 0;
};

struct Square final : Shape {
  explicit Square(double side) : side_(side) {}
  [[nodiscard]] double area() const override { return side_ * side_; }
  double side_;
};

Registry<Shape, double> shapes() {
  Registry<Shape, double> registry("shape");
  registry.add("square", "four sides", [](double side) { return std::make_unique<Square>(side); });
  registry.add("cube", "six faces", [](double side) { return std::make_unique<Square>(side * 6); });
  return registry;
}

TEST(Registry, CreatesByName) {
  EXPECT_EQ(shapes().create("square", 3)->area(), 9);
  EXPECT_TRUE(shapes().contains("cube"));
  EXPECT_FALSE(shapes().contains("circle"));
}

TEST(Registry, KeepsTheOrderOfRegistration) {
  EXPECT_THAT(shapes().names(), ::testing::ElementsAre("square", "cube"));
  EXPECT_EQ(shapes().entries()[1].help, "six faces");
  EXPECT_EQ(shapes().kind(), "shape");
}

TEST(Registry, HintsAtANameThatIsNear) {
  const auto registry = shapes();
  try {
    static_cast<void>(registry.create("sqare", 1));
    FAIL();
  } catch (const ConfigError& error) {
    EXPECT_THAT(error.what(), Names("shape", "'sqare'", "'square'"));
    EXPECT_THAT(error.what(), ::testing::Not(Names("cube")));
    EXPECT_EQ(error.exit_code(), ExitCode::usage);
  }
}

TEST(Registry, RefusesANameTwice) {
  auto registry = shapes();
  EXPECT_THROW(registry.add("cube", "", [](double) { return std::make_unique<Square>(1); }),
               std::logic_error);
}

}  // namespace
}  // namespace precast
