#include "framework/core/random_variables.h"

#include <gtest/gtest.h>

#include <cmath>

namespace precast {
namespace {

TEST(RandomBetaTest, HasTheMomentsOfTheDistribution) {
  for (const double alpha : {0.05, 0.2, 1.0, 3.0}) {
    double sum = 0, squares = 0;
    constexpr int kDraws = 20000;
    RandomStream random(1, 0, 0, RandomUse::test);
    for (int i = 0; i < kDraws; ++i) {
      const double draw = random_beta(random, alpha);
      ASSERT_TRUE(draw >= 0 && draw <= 1) << draw;
      sum += draw;
      squares += draw * draw;
    }
    const double mean = sum / kDraws;
    EXPECT_NEAR(mean, 0.5, 0.02) << alpha;
    EXPECT_NEAR(squares / kDraws - mean * mean, 1 / (4 * (2 * alpha + 1)), 0.01) << alpha;
  }
}

TEST(RandomGammaTest, HasTheMomentsOfTheDistribution) {
  for (const double shape : {0.5, 1.0, 4.0}) {
    double sum = 0, squares = 0;
    constexpr int kDraws = 20000;
    RandomStream random(2, 0, 0, RandomUse::test);
    for (int i = 0; i < kDraws; ++i) {
      const double draw = std::exp(log_random_gamma(random, shape));
      sum += draw;
      squares += draw * draw;
    }
    const double mean = sum / kDraws;
    EXPECT_NEAR(mean, shape, 0.03 * shape) << shape;
    EXPECT_NEAR(squares / kDraws - mean * mean, shape, 0.08 * shape) << shape;
  }
}

}  // namespace
}  // namespace precast
