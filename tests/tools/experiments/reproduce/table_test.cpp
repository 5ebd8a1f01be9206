#include "tools/experiments/reproduce/table.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "framework/core/error.h"
#include "framework/core/file.h"
#include "tests/support/message_matchers.h"
#include "tests/support/paths.h"
#include "tests/support/temporary_folder.h"

namespace precast::tools {
namespace {

using std::filesystem::path;
using test::Names;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

class TableTest : public ::testing::Test {
 protected:
  TableTest() { write_file(folder_ / "r.yaml", "training: {epochs: 1}\n"); }

  ResultTable read(const std::string& text) {
    write_file(folder_ / "table.yaml", text);
    return read_table(folder_ / "table.yaml");
  }
  std::string problems_of(const std::string& text) {
    try {
      static_cast<void>(read(text));
    } catch (const ConfigError& error) {
      return error.what();
    }
    return "";
  }

  test::TemporaryFolder folder_;
};

TEST_F(TableTest, ReadsRowsSourcesAndOtherSystems) {
  const ResultTable table = read(R"(
title: Three rows
train_images: 100
sources: [{id: paper, title: A paper, date: 2022, url: "https://example.org"}]
rows:
  - {id: a, model: Net, recipe: r.yaml, settings: {data.subset: "0:10", pipeline.val: [whole_image]}}
  - id: b
    model: Net
    recipe: r.yaml
    published: [{source: paper, top_1: 0.5, minutes: 12.5, hardware: 1 x A100}]
others: [{system: X, model: Net, source: paper, top_1: 0.25, note: estimated}]
)");
  EXPECT_EQ(table.title, "Three rows");
  EXPECT_EQ(table.train_images, 100);
  ASSERT_EQ(table.sources.size(), 1U);
  EXPECT_EQ(table.sources[0].id, "paper");
  EXPECT_EQ(table.sources[0].title, "A paper");
  ASSERT_EQ(table.rows.size(), 2U);
  ASSERT_EQ(table.rows[0].settings.size(), 2U);
  EXPECT_EQ(table.rows[0].settings[0].key, "data.subset");
  EXPECT_EQ(table.rows[0].settings[0].value, "0:10") << "unquoted, as on a command line";
  EXPECT_THAT(table.rows[0].settings[1].value, HasSubstr("whole_image"));
  EXPECT_TRUE(std::filesystem::is_regular_file(table.rows[0].recipe));
  ASSERT_EQ(table.rows[1].published.size(), 1U);
  EXPECT_EQ(table.rows[1].published[0].top_1, 0.5);
  EXPECT_EQ(table.rows[1].published[0].top_5, std::nullopt);
  EXPECT_EQ(table.rows[1].published[0].minutes, 12.5);
  ASSERT_EQ(table.others.size(), 1U);
  EXPECT_EQ(table.others[0].figures.note, "estimated");
}

TEST_F(TableTest, ReportsAllMistakesWithTheirLocations) {
  EXPECT_THAT(problems_of(R"(title: t
rows:
  - {id: a/b, model: Net, recipe: r.yaml}
  - {id: c, model: Net, recipe: missing.yaml}
  - {id: c, model: Net, recipe: r.yaml, published: [{source: nobody, top_1: 76}]}
  - {model: Net, recipe: r.yaml, epoch: 3}
)"),
              Names("table.yaml:3", "a/b", "missing.yaml", "'c'", "nobody",
                    "rows[2].published[0].top_1", "rows[3].id", "rows[3].epoch"));
}

TEST_F(TableTest, RefusesRowsThatOnlyEvaluate) {
  EXPECT_THAT(problems_of(R"(title: t
rows:
  - {id: a, model: Net, recipe: r.yaml, settings: {training.eval_only: true}}
)"),
              Names("table.yaml:3:72", "training.eval_only", "precast eval"));
}

TEST_F(TableTest, RejectsValuesThatAreNotLists) {
  EXPECT_THAT(problems_of("title: t\nrows: {a: 1}\n"), Names("table.yaml:2:7", "rows", "{a: 1}"));
  EXPECT_THAT(problems_of("title: t\nrows: [3]\n"), Names("table.yaml:2:8", "rows[0]", 3));
  EXPECT_THAT(problems_of("title: t\n"), Names("rows"));
}

TEST_F(TableTest, ReadsPublishedCurves) {
  write_file(folder_ / "curves.csv",
             "# of somebody\nrow,epoch,minutes,top_1,top_5\na,0,1.5,0.1,0.2\na,1,3,0.3,0.4\n");
  const ResultTable table =
      read("title: t\ncurves: curves.csv\nrows: [{id: a, model: N, recipe: r.yaml}]\n");
  ASSERT_EQ(table.curves.at("a").size(), 2U);
  EXPECT_EQ(table.curves.at("a")[1].minutes, 3);
  EXPECT_EQ(table.curves.at("a")[1].top_1, 0.3);

  write_file(folder_ / "curves.csv", "row,epoch,minutes,top_1\na,0,soon,0.1\n");
  EXPECT_THAT(
      problems_of("title: t\ncurves: curves.csv\nrows: [{id: a, model: N, recipe: r.yaml}]\n"),
      Names("curves.csv:2", "soon"));
}

TEST(TablesOfThisProject, AreRead) {
  for (const char* name :
       {"imagenet", "imagenet/first_release", "imagenette", "fashion_mnist", "cifar10"}) {
    const ResultTable table =
        read_table(std::filesystem::path(test::source_dir()) / "configs" / name / "table.yaml");
    EXPECT_GE(table.rows.size(), 3U) << name;
    for (const FigureSource& source : table.sources) EXPECT_FALSE(source.url.empty()) << source.id;
  }
}

/// The rows of configs/FOLDER/table.yaml. Each row must have one source, and a recipe next to the
/// table.
std::vector<TableRow> imagenet_rows(const std::string& folder) {
  const path table = path(test::source_dir()) / "configs" / folder / "table.yaml";
  std::vector<TableRow> rows = read_table(table).rows;
  std::vector<std::string> ids;
  for (const TableRow& row : rows) {
    ids.push_back(row.id);
    EXPECT_EQ(row.published.size(), 1U);
    EXPECT_EQ(path(row.recipe).parent_path(), table.parent_path());
  }
  EXPECT_THAT(ids, ElementsAre("rn50_16", "rn50_24", "rn50_32", "rn50_40", "rn50_56", "rn50_88",
                               "rn18_16", "rn18_24", "rn18_32", "rn18_40", "rn18_56", "rn18_88"));
  return rows;
}

TEST(TablesOfThisProject, HoldTheTwelveRunsOfTheFirstRelease) {
  const std::vector<TableRow> rows = imagenet_rows("imagenet/first_release");
  const double top_1[] = {0.724, 0.746, 0.754, 0.763, 0.773, 0.78,
                          0.655, 0.679, 0.69,  0.698, 0.707, 0.715};
  for (std::size_t i = 0; i < rows.size(); ++i) {
    EXPECT_EQ(rows[i].published[0].source, "ffcv-first-release");
    EXPECT_EQ(rows[i].published[0].top_1, top_1[i]) << rows[i].id;
  }
}

TEST(TablesOfThisProject, HoldTheTwelvePublishedTrainings) {
  imagenet_rows("imagenet");
  const ResultTable table =
      read_table(std::filesystem::path(test::source_dir()) / "configs/imagenet/table.yaml");
  // The curve of a run ends with the row's figures.
  for (const int epochs : {16, 24, 32, 40, 56, 88}) {
    const std::string id = "rn50_" + std::to_string(epochs);
    const auto row = std::find_if(table.rows.begin(), table.rows.end(),
                                  [&](const auto& r) { return r.id == id; });
    ASSERT_EQ(table.curves.at(id).size(), static_cast<std::size_t>(epochs));
    EXPECT_NEAR(table.curves.at(id).back().top_1, *row->published[0].top_1, 5e-5);
    // The published time includes a second evaluation at the end.
    EXPECT_NEAR(table.curves.at(id).back().minutes, *row->published[0].minutes, 0.1);
  }
}

}  // namespace
}  // namespace precast::tools
