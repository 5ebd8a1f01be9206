#include "tools/experiments/grid/grid_charts.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/support/message_matchers.h"
#include "tests/tools/report/chart/xml.h"

namespace precast::tools {
namespace {

using nlohmann::ordered_json;
using test::count_of;
using test::Names;
using testing::ElementsAre;
using testing::HasSubstr;

/// A grid in the form of describe_grid(), with combinations {settings, mean}, best first.
ordered_json grid_of(const std::vector<std::pair<ordered_json, double>>& combinations) {
  ordered_json grid = {{"metric", "top_1"}, {"maximise", true}};
  for (const auto& [settings, mean] : combinations) {
    const std::string id = fmt::format("t{}", grid["trials"].size());
    grid["ranking"].push_back({{"settings", settings}, {"mean", mean}, {"complete", true}});
    grid["trials"].push_back({{"trial", id}, {"settings", settings}, {"value", mean}});
  }
  return grid;
}

ordered_json product_grid() {
  std::vector<std::pair<ordered_json, double>> all;
  for (const char* decay : {"5e-4", "5e-5"}) {
    for (const char* lr : {"0.1", "0.02", "1"}) {
      for (const char* arch : {"resnet18", "resnet50"}) {
        const bool large = std::string(arch) == "resnet50";
        all.push_back({{{"training.weight_decay", decay}, {"lr.lr", lr}, {"model.arch", arch}},
                       large ? 0.75 : 0.25});
      }
    }
  }
  return grid_of(all);
}

TEST(GridChartsTest, AxesAreInTheSweepsOrderWithNumbersBySize) {
  const std::vector<GridAxis> axes = grid_axes(product_grid());
  ASSERT_EQ(axes.size(), 3U);
  EXPECT_EQ(axes[0].label, "weight_decay");
  EXPECT_THAT(axes[0].values, ElementsAre("5e-5", "5e-4"));
  EXPECT_THAT(axes[1].numbers, ElementsAre(0.02, 0.1, 1));
  EXPECT_THAT(axes[2].values, ElementsAre("resnet18", "resnet50"));
  EXPECT_TRUE(axes[2].numbers.empty());
}

TEST(GridChartsTest, TheHeatMapShowsTheLongestAxesAndAveragesTheOthers) {
  const GridChart chart = grid_heat_map(product_grid());
  EXPECT_THAT(chart.svg, Names("top_1", "lr", "weight_decay"));
  EXPECT_THAT(chart.svg, HasSubstr("<title>weight_decay 5e-4, lr 0.1: 0.5</title>"));
  EXPECT_EQ(count_of(chart.svg, ": 0.5</title>"), 6);
  EXPECT_THAT(chart.remark, Names("arch"));
}

TEST(GridChartsTest, DrawnAxesMakeNoHeatMap) {
  std::vector<std::pair<ordered_json, double>> drawn;
  for (int i = 0; i < 9; ++i)
    drawn.push_back({{{"a.x", fmt::format("{}", i)}, {"a.y", fmt::format("{}", i * i)}}, i * 1.0});
  EXPECT_EQ(grid_heat_map(grid_of(drawn)).svg, "");
  const std::string lines = grid_parallel_coordinates(grid_of(drawn)).svg;
  EXPECT_EQ(count_of(lines, "<title>"), 9);
  EXPECT_THAT(lines, HasSubstr("stroke-width=\"4\"")) << "the best one";

  ordered_json lost = grid_of(drawn);
  for (ordered_json& entry : lost.at("ranking")) entry["complete"] = false;
  const GridChart unfinished = grid_parallel_coordinates(lost);
  EXPECT_EQ(count_of(unfinished.svg, "stroke-width=\"4\""), 0);
  EXPECT_EQ(unfinished.remark, "");
}

TEST(GridChartsTest, CurvesNameTheBestThreeOnly) {
  const ordered_json grid = product_grid();
  std::map<std::string, std::vector<LinePoint>> curves;
  for (const ordered_json& trial : grid.at("trials"))
    curves[trial.at("trial")] = {{1, 0.1}, {2, trial.at("value")}};
  const GridChart chart = grid_curves(grid, "top_1", curves);
  EXPECT_EQ(count_of(chart.svg, "class=\"line faint\""), 9);
  // Trials with odd numbers have the larger model and are the best. The legend names the best
  // three; the other names are only in tooltips.
  for (const char* best : {">t1</text>", ">t3</text>", ">t5</text>"})
    EXPECT_THAT(chart.svg, HasSubstr(best));
  EXPECT_EQ(count_of(chart.svg, ">t0</text>"), 0);
  EXPECT_THAT(chart.remark, Names(3, 12));
}

}  // namespace
}  // namespace precast::tools
