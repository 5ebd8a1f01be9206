#include "tools/app/prediction_table.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <nlohmann/json.hpp>
#include <sstream>

namespace precast::tools {
namespace {

using testing::DoubleNear;
using testing::ElementsAre;

std::vector<std::int64_t> labels_of(const std::vector<Prediction>& best) {
  std::vector<std::int64_t> labels;
  for (const Prediction& prediction : best) labels.push_back(prediction.label);
  return labels;
}

TEST(PredictionTableTest, ProbabilityIsTheSoftmaxOfTheMeanOverThePasses) {
  const std::vector<float> sums = {2.0F, 4.0F, -6.0F};
  const double e[] = {std::exp(1.0), std::exp(2.0), std::exp(-3.0)};
  const double sum = e[0] + e[1] + e[2];
  const auto best = most_probable(sums, /*passes=*/2, 3, Probability::softmax);
  EXPECT_THAT(labels_of(best), ElementsAre(1, 0, 2));
  EXPECT_THAT(best[0].probability, DoubleNear(e[1] / sum, 1e-12));
  EXPECT_THAT(best[1].probability, DoubleNear(e[0] / sum, 1e-12));
  EXPECT_THAT(best[2].probability, DoubleNear(e[2] / sum, 1e-12));
}

TEST(PredictionTableTest, SigmoidGivesEachClassAProbability) {
  const std::vector<float> sums = {-2, 4, 3e38F, -3e38F};
  const auto best = most_probable(sums, /*passes=*/2, 4, Probability::sigmoid);
  EXPECT_THAT(labels_of(best), ElementsAre(2, 1, 0, 3));
  EXPECT_DOUBLE_EQ(best[0].probability, 1);
  EXPECT_DOUBLE_EQ(best[1].probability, 1 / (1 + std::exp(-2.0)));
  EXPECT_DOUBLE_EQ(best[2].probability, 1 / (1 + std::exp(1.0)));
  EXPECT_DOUBLE_EQ(best[3].probability, 0);
}

TEST(PredictionTableTest, LargeLogitsDoNotOverflow) {
  const std::vector<float> logits = {3e4F, 3e4F, -3e38F};
  const auto best = most_probable(logits, 1, 2, Probability::softmax);
  EXPECT_DOUBLE_EQ(best[0].probability, 0.5);
  EXPECT_DOUBLE_EQ(best[1].probability, 0.5);
}

TEST(PredictionTableTest, OfEqualLogitsTheLowerLabelComesFirst) {
  const std::vector<float> logits = {1, 5, 5, 1, 5};
  for (const Probability kind : {Probability::softmax, Probability::sigmoid}) {
    EXPECT_THAT(labels_of(most_probable(logits, 1, 4, kind)), ElementsAre(1, 2, 4, 0));
    EXPECT_THAT(labels_of(most_probable(logits, 1, 99, kind)), ElementsAre(1, 2, 4, 0, 3));
  }
}

TEST(PredictionTableTest, CsvHasAPairOfColumnsForEachRankAndQuotesNames) {
  const PredictionTable table({"cat", "dog, large", "a \"b\""}, 2);
  EXPECT_EQ(table.csv_header(), "name,class,probability,class_2,probability_2\n");
  EXPECT_EQ(table.csv_row("x,1.jpg", std::vector<Prediction>{{1, 0.75}, {2, 0.125}}),
            "\"x,1.jpg\",\"dog, large\",0.75,\"a \"\"b\"\"\",0.125\n");
  EXPECT_EQ(PredictionTable({}, 1).csv_row("0", std::vector<Prediction>{{7, 1.0 / 3}}),
            "0,7,0.333333\n");
}

TEST(PredictionTableTest, JsonHasOneObjectALine) {
  const PredictionTable table({"cat"}, 2);
  const std::vector<Prediction> best = {{1, 0.75}, {0, 0.25}};
  const std::string row = table.json_row("caf\xe9\n.jpg", best, {});
  EXPECT_EQ(std::ranges::count(row, '\n'), 1);
  const auto parsed = nlohmann::json::parse(row);
  ASSERT_EQ(parsed.at("predictions").size(), 2U);
  EXPECT_FALSE(parsed.at("predictions")[0].contains("class"));
  EXPECT_EQ(parsed.at("predictions")[0].at("label"), 1);
  EXPECT_EQ(parsed.at("predictions")[1].at("class"), "cat");
  EXPECT_EQ(parsed.at("predictions")[1].at("probability"), 0.25);
  EXPECT_FALSE(parsed.contains("logits"));
  const std::vector<float> logits = {0.1F, -2};
  EXPECT_EQ(nlohmann::json::parse(table.json_row("a", best, logits)).at("logits")[0].get<float>(),
            0.1F);
}

TEST(PredictionTableTest, JsonOfOutputsHasNoClasses) {
  const std::vector<float> outputs = {0.1F, -2};
  const auto parsed = nlohmann::json::parse(outputs_json_row("a", outputs));
  EXPECT_EQ(parsed.at("name"), "a");
  EXPECT_EQ(parsed.at("outputs").get<std::vector<float>>(), outputs);
  EXPECT_EQ(parsed.size(), 2U);
}

TEST(PredictionTableTest, NineDigitsRestoreALogit) {
  EXPECT_EQ(logits_csv_header("sample", 2), "sample,logit_0,logit_1\n");
  const std::vector<float> logits = {0.1F, 1e-30F};
  std::istringstream row(logits_csv_row("0", logits));
  std::string name, first, second;
  std::getline(row, name, ',');
  std::getline(row, first, ',');
  std::getline(row, second);
  EXPECT_EQ(std::stof(first), 0.1F);
  EXPECT_EQ(std::stof(second), 1e-30F);
}

}  // namespace
}  // namespace precast::tools
