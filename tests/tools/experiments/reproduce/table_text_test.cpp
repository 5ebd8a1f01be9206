#include "tools/experiments/reproduce/table_text.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/support/message_matchers.h"
#include "tests/support/program.h"
#include "tests/tools/report/sound_page.h"
#include "tools/experiments/reproduce/projection.h"
#include "tools/experiments/reproduce/table_page.h"

namespace precast::tools {
namespace {

using test::Names;
using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Ne;
using ::testing::Not;
using ::testing::Pair;

/// A table of two rows; the first was run with two seeds, the second is waiting.
class TableTextTest : public ::testing::Test {
 protected:
  TableTextTest() {
    table_.title = "A table";
    table_.train_images = 60000;
    table_.sources = {{"paper", "A paper", "2022", "https://example.org"}};
    table_.rows = {
        {.id = "a",
         .model = "Net",
         .recipe = "r.yaml",
         .settings = {{"training.epochs", "3"}},
         .published =
             {{.source = "paper", .top_1 = 0.75, .minutes = 12.5, .hardware = "1 x A100"}}},
        {.id = "b", .model = "Net", .recipe = "r.yaml"}};
    for (const TableRow& row : table_.rows) {
      rows_.push_back({&row, {}});
      for (int seed = 0; seed < 2; ++seed)
        rows_.back().trials.push_back(make_row_trial(
            row, seed, {{"lr.lr", "0.1"}, {"data.train_dataset", "t.beton"}}, "runs"));
    }
    for (const double top_1 : {0.70, 0.72}) {
      TrialState state;
      state.status = TrialStatus::done;
      state.figures = {
          {"top_1", top_1}, {"top_5", 0.9}, {"train_minutes", 2.0}, {"eval_minutes", 0.5}};
      states_[top_1 < 0.71 ? "a-seed0" : "a-seed1"] = state;
    }
  }

  ResultTable table_;
  std::vector<RowTrials> rows_;
  std::map<std::string, TrialState> states_;
};

TEST_F(TableTextTest, ATrialIsARecipeWithTheRowsKeysThenTheCommonOnesThenItsSeed) {
  EXPECT_EQ(rows_[0].trials[1].id, "a-seed1");
  std::vector<std::string> keys;
  for (const Setting& setting : rows_[0].trials[1].settings)
    keys.push_back(setting.key + "=" + setting.value);
  EXPECT_THAT(keys, ElementsAre("training.epochs=3", "lr.lr=0.1", "data.train_dataset=t.beton",
                                "training.seed=1"));
}

TEST_F(TableTextTest, ALaterValueOfAKeyReplacesTheRows) {
  const Trial trial = make_row_trial(table_.rows[0], 0, {{"training.epochs", "5"}}, "runs");
  ASSERT_EQ(trial.settings.size(), 2U);
  EXPECT_EQ(trial.settings[0].value, "5");
}

TEST_F(TableTextTest, ShowsOursBesideThePublishedFigures) {
  const std::string text = table_markdown(table_, collect_results(rows_, states_));
  // 0.71 +- t(1 degree of freedom, 97.5 %) = 12.7062 x 0.01.
  EXPECT_THAT(text, HasSubstr("| a | Net | 0.7100 ± 0.1271 | 0.7500 | 0.9000 ± 0.0000 | - | "
                              "2.5 ± 0.0 | 12.5 | 2 of 2 |"));
  EXPECT_THAT(text, HasSubstr("| b | Net | - | - | - | - | - | - | 0 of 2 |"));
  EXPECT_THAT(text, HasSubstr("<https://example.org>"));
}

TEST_F(TableTextTest, NamesWhatDiffersFromThePublishedRuns) {
  auto results = collect_results(rows_, states_);
  results[0].runs[0].facts = {
      {"device", "EPYC"}, {"processor", "EPYC"}, {"cores", 2}, {"train_images", 10000}};
  EXPECT_THAT(differences(table_, results[0]),
              ElementsAre(Names(2, "EPYC", "1 x A100"), Names(10000, 60000),
                          AllOf(Names("lr.lr=0.1"), Not(HasSubstr("training.epochs")))))
      << "the row itself sets training.epochs";
  EXPECT_TRUE(differences(table_, results[1]).empty()) << "nothing ran";
}

TEST_F(TableTextTest, OneCoreIsSingular) {
  auto results = collect_results(rows_, states_);
  results[0].runs[0].facts = {{"device", "EPYC"}, {"processor", "EPYC"}, {"cores", 1}};
  EXPECT_THAT(differences(table_, results[0])[0], AllOf(Names(1, "EPYC"), Not(HasSubstr("cores"))));
}

TEST_F(TableTextTest, ShortTimesKeepTwoDigits) {
  const auto text = [](double minutes) { return minutes_text(std::optional(minutes)); };
  EXPECT_EQ(text(12.54), "12.5");
  EXPECT_EQ(text(1), "1.0");
  EXPECT_EQ(text(0.5), "0.50");
  EXPECT_EQ(text(0.0174), "0.017");
  EXPECT_EQ(text(0.000003), "0.0000");
  EXPECT_EQ(text(0), "0.0");
  for (auto& [trial, state] : states_)
    state.figures.update(
        {{"train_minutes", trial == "a-seed0" ? 0.02 : 0.03}, {"eval_minutes", 0.001}});
  const auto results = collect_results(rows_, states_);
  // t(1 degree of freedom, 97.5 %) = 12.7062 x 0.005.
  EXPECT_THAT(table_markdown(table_, results), HasSubstr("| 0.026 ± 0.064 |"));
  EXPECT_THAT(table_page(table_, results), HasSubstr("0.026 ± 0.064"));
}

TEST_F(TableTextTest, EverySeedThatEndedWithoutAResultIsNamed) {
  for (const char* trial : {"b-seed0", "b-seed1"}) states_[trial].status = TrialStatus::diverged;
  EXPECT_THAT(collect_results(rows_, states_)[1].progress(), Names(0, 1, "diverged"));
  states_["b-seed1"].status = TrialStatus::failed;
  EXPECT_THAT(collect_results(rows_, states_)[1].progress(),
              Names("seed 0: diverged", "seed 1: failed"));
}

TEST_F(TableTextTest, ADifferenceOfSeveralRowsIsListedOnce) {
  auto results = collect_results(rows_, states_);
  results[0].runs[0].facts = {{"device", "EPYC"}, {"processor", "EPYC"}, {"cores", 2}};
  results[1].runs[0].facts = results[0].runs[0].facts;
  std::vector<std::pair<std::string, std::string>> joined;
  for (const auto& [rows, line] : joined_differences(table_, results))
    joined.emplace_back(rows, line);
  const auto all_rows = AllOf(Ne("a"), Ne("b"));
  EXPECT_THAT(joined,
              ElementsAre(Pair("a", Names(2, "EPYC", "1 x A100")), Pair(all_rows, Names(0, 60000)),
                          Pair(all_rows, Names("lr.lr=0.1")), Pair("b", Names(2, "EPYC"))));
  EXPECT_EQ(test::occurrences(table_markdown(table_, results), "lr.lr=0.1"), 1);
}

TEST_F(TableTextTest, ADifferenceThatOneStartedRowLacksIsNotOneOfAllRows) {
  auto results = collect_results(rows_, states_);
  results[0].runs[0].facts = {{"device", "EPYC"}, {"processor", "EPYC"}, {"cores", 2}};
  results[1].runs[0].facts = {{"train_images", 60000}};
  results[1].runs[0].trial.settings.clear();
  results.push_back(results[0]);
  ASSERT_TRUE(differences(table_, results[1]).empty());
  const auto joined = joined_differences(table_, results);
  ASSERT_FALSE(joined.empty());
  for (const auto& [rows, line] : joined) EXPECT_EQ(rows, "a, a");
}

TEST_F(TableTextTest, NamesDoNotBreakTheTableOfMarkdown) {
  table_.title = "A|B";
  table_.rows[0].model = "Net|18\nwide";
  table_.others = {
      {.system = "X|\\", .model = "Y", .figures = {.hardware = "1|2", .note = "a\nb"}}};
  const std::string text = table_markdown(table_, collect_results(rows_, states_));
  EXPECT_THAT(text, HasSubstr("# A\\|B\n"));
  EXPECT_THAT(text, HasSubstr("| a | Net\\|18 wide | 0.7100"));
  EXPECT_THAT(text, HasSubstr("| X\\|\\\\ | Y | - | - | 1\\|2 | a b |"));
  table_.rows[0].published[0].hardware = "8|A100";
  const std::string projection = projection_markdown(
      table_, "a100_40gb", {{.row = &table_.rows[0], .gpus = 2, .minutes = 3, .fused_minutes = 2}});
  EXPECT_THAT(projection, HasSubstr("A\\|B\n"));
  EXPECT_THAT(projection, HasSubstr("| a | Net\\|18 wide | 2 | 3.0 | 2.0 | 12.5 | 8\\|A100 |"));
}

TEST_F(TableTextTest, ThePageIsValidForAnyNamesAndShowsAllResults) {
  const std::string hostile = "</title><b title=\"https://x.org\">|&";
  table_.title = hostile;
  table_.rows[0].model = hostile;
  table_.rows[0].published[0].hardware = hostile;
  table_.sources[0].title = hostile;
  table_.others = {{.system = hostile, .model = hostile, .figures = {.top_1 = 0.5, .minutes = 3}}};
  auto results = collect_results(rows_, states_);
  results[0].runs[0].curve = {{1, 1, 0.5}, {2, 2, 0.7}};
  results[0].runs[0].facts = {{"device", hostile}, {"train_images", 7}};
  EXPECT_THAT(table_page(table_, results), Not(HasSubstr("/report.html")))
      << "the run has no report yet";
  results[0].runs[0].has_report = true;
  const std::string page = table_page(table_, results);
  test::expect_valid_page(page);
  for (const char* part :
       {"0.7100 ± 0.1271", "<b>0.7500</b>", "<b>1 of 2</b>", "href=\"a-seed0/report.html\""})
    EXPECT_THAT(page, HasSubstr(part));
}

TEST_F(TableTextTest, ThePageHasNoColumnsOfFiguresThatNobodyPublished) {
  const auto columns = [this] {
    return test::occurrences(table_page(table_, collect_results(rows_, states_)), "<th");
  };
  auto& published = table_.rows[0].published;
  const int top_1_and_minutes = columns();
  published[0].top_5 = 0.875;
  EXPECT_EQ(columns(), top_1_and_minutes + 1);
  published.clear();
  EXPECT_EQ(columns(), top_1_and_minutes - 2);
}

TEST_F(TableTextTest, ADivergedSeedIsNamedAndDoesNotCount) {
  states_["a-seed1"].status = TrialStatus::diverged;
  const auto results = collect_results(rows_, states_);
  EXPECT_THAT(results[0].progress(), Names("seed 1", std::string(name_of(TrialStatus::diverged))));
  EXPECT_EQ(results[0].figure("top_1")->count, 1);
  EXPECT_THAT(table_markdown(table_, results), HasSubstr("| a | Net | 0.7000 | 0.7500 |"));
}

TEST_F(TableTextTest, JsonHoldsEverySeed) {
  const auto json = table_json(table_, collect_results(rows_, states_));
  EXPECT_EQ(json.at("rows").size(), 2U);
  EXPECT_EQ(json.at("rows")[0].at("runs").size(), 2U);
  EXPECT_NEAR(json.at("rows")[0].at("top_1").at("mean").get<double>(), 0.71, 1e-12);
  EXPECT_TRUE(json.at("rows")[1].at("top_1").is_null());
  EXPECT_EQ(json.at("sources")[0].at("id"), "paper");
}

}  // namespace
}  // namespace precast::tools
