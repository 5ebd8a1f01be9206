#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <string>

#include "tests/tools/report/chart/xml.h"
#include "tools/report/chart/bar_chart.h"
#include "tools/report/chart/heat_map.h"
#include "tools/report/chart/line_chart.h"
#include "tools/report/chart/parallel_coordinates.h"
#include "tools/report/chart/scatter_chart.h"
#include "tools/report/chart/svg.h"

namespace precast::tools {
namespace {

using test::count_of;
using test::parse_xml;
using ::testing::HasSubstr;
using ::testing::Not;

constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();
constexpr double kInfinity = std::numeric_limits<double>::infinity();
const std::string kHostile = "</svg><script>alert('1')</script>&\"\x01\xff";

/// Every kind of chart of these values, with `text` wherever a chart has text.
std::vector<std::string> all_charts(const std::string& text, const std::vector<double>& values) {
  const Axis axis{.label = text}, log{.label = text, .scale = Scale::logarithmic};
  LineSeries line{.label = text, .points = {}};
  ScatterSeries dots{.label = text, .points = {}, .joined = true};
  std::vector<Bar> bars;
  std::vector<ParallelLine> trials;
  for (std::size_t i = 0; i < values.size(); ++i) {
    line.points.push_back({static_cast<double>(i), values[i]});
    dots.points.push_back(
        {.x = values[i], .y = values[i], .label = text, .y_low = values[i], .y_high = 2});
    bars.push_back({text, values[i], text});
    trials.push_back({text, {values[i], 0, values[i]}, i == 0});
  }
  line.low = line.high = values;
  std::vector<std::string> all;
  for (const Axis& y : {axis, log}) {
    all.push_back(line_chart_svg({.title = text, .x = axis, .y = y, .series = {line, line}}));
    all.push_back(scatter_chart_svg({.title = text, .x = y, .y = axis, .series = {dots, dots}}));
    all.push_back(bar_chart_svg({.title = text, .unit = text, .bars = bars, .scale = y.scale}));
  }
  all.push_back(share_chart_svg({.title = text, .parts = {text, text}, .rows = {{text, values}}}));
  all.push_back(heat_map_svg({.title = text,
                              .x_label = text,
                              .y_label = text,
                              .columns = {text, "b"},
                              .rows = {text},
                              .values = {values},
                              .value_label = text}));
  all.push_back(
      parallel_coordinates_svg({.title = text,
                                .axes = {{text}, {.label = text, .names = {text}}, {text}},
                                .lines = trials}));
  return all;
}

TEST(ChartsTest, AreWellFormedWhateverTheTextsAre) {
  for (const std::string& svg : all_charts(kHostile, {1, 2, 5})) {
    const auto drawing = parse_xml(svg).get_child("svg");
    EXPECT_EQ(drawing.get<std::string>("text").substr(0, 15), "</svg><script>a");
    EXPECT_THAT(svg, Not(HasSubstr("<script")));
  }
}

TEST(ChartsTest, AreWellFormedWhateverTheValuesAre) {
  for (const std::vector<double>& values : {std::vector<double>{},
                                            {1},
                                            {kNaN},
                                            {kNaN, kInfinity, -kInfinity},
                                            {0, 0},
                                            {-1, 3},
                                            {1e-300, 1e300},
                                            {1, kNaN, 2}}) {
    for (const std::string& svg : all_charts("t", values)) {
      EXPECT_NO_THROW((void)parse_xml(svg)) << svg;
      EXPECT_THAT(svg, Not(HasSubstr("\"nan")));
      EXPECT_THAT(svg, Not(HasSubstr(" nan")));
      EXPECT_THAT(svg, Not(HasSubstr("Mnan")));
      EXPECT_THAT(svg, Not(HasSubstr("inf\"")));
    }
  }
}

TEST(ChartsTest, SayThatThereAreNoData) {
  const char* notice = "class=\"soft empty\"";
  for (const std::string& svg : all_charts("t", {})) EXPECT_EQ(count_of(svg, notice), 1);
  for (const std::string& svg : all_charts("t", {1, 2})) EXPECT_EQ(count_of(svg, notice), 0);
}

TEST(ChartsTest, NeedNothingFromOutside) {
  for (const std::string& svg : all_charts("t", {1, 2})) {
    const std::string file = svg_file(svg);
    EXPECT_NO_THROW((void)parse_xml(file));
    EXPECT_THAT(file, HasSubstr("prefers-color-scheme:dark"));
    EXPECT_EQ(count_of(file, "http"), 1) << "the XML namespace is the only URL";
    for (const char* loads : {"href", "url(", "@import", "<image", "<script"})
      EXPECT_THAT(file, Not(HasSubstr(loads)));
  }
}

TEST(LineChartTest, AGapBreaksTheLineAndAPointAloneIsADot) {
  LineChart chart{.title = "loss",
                  .series = {{.label = "a", .points = {{0, 1}, {1, 2}, {2, kNaN}, {3, 2}}}}};
  const std::string svg = line_chart_svg(chart);
  const std::size_t path = svg.find("<path class=\"line\" d=\"");
  ASSERT_NE(path, std::string::npos);
  EXPECT_EQ(count_of(svg.substr(path, svg.find("/>", path) - path), "M"), 2);
  EXPECT_EQ(count_of(svg, "<circle"), 3);
  EXPECT_THAT(svg, HasSubstr("<title>a,  1: 2</title>"));
}

TEST(LineChartTest, ThousandsOfPointsAreThinnedAndKeepTheirExtremes) {
  LineSeries series{.label = "a", .points = {}};
  for (int i = 0; i < 100000; ++i)
    series.points.push_back({static_cast<double>(i), i == 54321 ? 9.0 : 1.0});
  const std::string spike = line_chart_svg({.title = "", .y = {.max = 9}, .series = {series}});
  EXPECT_LT(spike.size(), 60000U);
  series.points[54321].y = 1;
  const std::string flat = line_chart_svg({.title = "", .y = {.max = 9}, .series = {series}});
  EXPECT_NE(spike, flat);
}

TEST(LineChartTest, StepsHoldTheirValue) {
  const LineSeries series{.label = "px", .points = {{0, 128}, {1, 160}}, .steps = true};
  const std::string svg = line_chart_svg({.title = "", .series = {series}});
  EXPECT_EQ(count_of(svg.substr(svg.find("class=\"line\"")), "L"), 2);
}

TEST(LineChartTest, ALongLegendMakesTheChartHigher) {
  const auto drawn = [](int count) {
    LineChart chart{.title = "loss", .x = {.label = "epochs"}};
    for (int i = 0; i < count; ++i)
      chart.series.push_back({.label = "runs/exp/seed" + std::to_string(i), .points = {{0, 1}}});
    return parse_xml(line_chart_svg(chart)).get_child("svg");
  };
  EXPECT_EQ(drawn(2).get<double>("<xmlattr>.height"), 300);
  const auto drawing = drawn(60);
  const double height = drawing.get<double>("<xmlattr>.height");
  EXPECT_GT(height, 300);
  for (const auto& [tag, element] : drawing) {
    if (tag == "text") {
      EXPECT_LT(element.get<double>("<xmlattr>.y", 0), height);
    }
  }
}

TEST(BarChartTest, LongerBarsForLargerValues) {
  const std::string svg = bar_chart_svg({.title = "<fast> & \"loose\"",
                                         .unit = "img/s",
                                         .bars = {{"a<b", 12345.6}, {"c", 3, "slow"}},
                                         .scale = Scale::logarithmic});
  std::vector<double> widths;
  const auto drawing = parse_xml(svg).get_child("svg");
  for (const auto& [tag, element] : drawing) {
    if (tag == "g") widths.push_back(element.get<double>("rect.<xmlattr>.width"));
  }
  ASSERT_EQ(widths.size(), 2U);
  EXPECT_GT(widths[0], 2 * widths[1]);
  EXPECT_THAT(svg, HasSubstr("12,346 img/s"));
  EXPECT_THAT(svg, HasSubstr("3 img/s, slow"));
}

TEST(ShareChartTest, SharesAreOfTheWholeRow) {
  const std::string svg = share_chart_svg(
      {.title = "", .parts = {"computing", "waiting"}, .rows = {{"a", {30, 10}}, {"b", {0, 0}}}});
  EXPECT_THAT(svg, HasSubstr("computing: 75 %"));
  EXPECT_THAT(svg, HasSubstr("waiting: 25 %"));
  EXPECT_EQ(count_of(svg, "class=\"soft empty\""), 1) << "b";
}

TEST(ScatterChartTest, LabelsThatHaveNoRoomAreLeftToTheTooltip) {
  ScatterSeries crowd{.label = "ours", .points = {}};
  for (int i = 0; i < 30; ++i)
    crowd.points.push_back({.x = 1 + i * 1e-6, .y = 1, .label = "rn50, 16 epochs"});
  const std::string svg = scatter_chart_svg({.title = "", .series = {crowd}});
  const int written = count_of(svg, ">rn50, 16 epochs</text>");
  EXPECT_GE(written, 1);
  EXPECT_LT(written, 30);
  EXPECT_EQ(count_of(svg, "<title>ours, rn50, 16 epochs"), 30);
}

TEST(HeatMapTest, BrightCellsAreLargeAndMissingOnesGrey) {
  const std::string svg = heat_map_svg(
      {.title = "", .columns = {"0.1", "1"}, .rows = {"a", "b"}, .values = {{1, 3}, {2}}});
  EXPECT_THAT(svg, HasSubstr(scale_colour(0)));
  EXPECT_THAT(svg, HasSubstr(scale_colour(0.5)));
  EXPECT_THAT(svg, HasSubstr("fill=\"" + scale_colour(1)));
  EXPECT_THAT(svg, HasSubstr("fill=\"#9a9a9a\""));
}

TEST(ParallelCoordinatesTest, TheBestTrialIsDrawnLast) {
  const std::string svg =
      parallel_coordinates_svg({.title = "",
                                .axes = {{"lr"}, {"top-1"}},
                                .lines = {{"best", {1, 2}, true}, {"other", {2, 1}}}});
  EXPECT_LT(svg.find("<title>other"), svg.find("<title>best"));
}

TEST(SvgTest, KeepsWholeCharactersAndDropsBrokenOnes) {
  EXPECT_EQ(escaped("µs \xe2\x82 é"), "µs  é");
  EXPECT_EQ(escaped("a\x1b[0m"), "a[0m");
  EXPECT_EQ(escaped("<'\">&"), "&lt;&#39;&quot;&gt;&amp;");
}

TEST(SvgTest, NumbersAreShort) {
  EXPECT_EQ(readable(12345.6), "12,346");
  EXPECT_EQ(readable(-1234567), "-1,234,567");
  EXPECT_EQ(readable(0.71234), "0.7123");
  EXPECT_EQ(readable(kNaN), "-");
}

}  // namespace
}  // namespace precast::tools
