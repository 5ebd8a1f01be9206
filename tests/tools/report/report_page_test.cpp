#include "tools/report/report_page.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "framework/core/error.h"
#include "tests/support/paths.h"
#include "tests/support/program.h"
#include "tests/support/temporary_folder.h"
#include "tests/tools/report/run_folder_files.h"
#include "tests/tools/report/sound_page.h"
#include "tools/report/class_accuracies.h"
#include "tools/report/html_page.h"

namespace precast::tools {
namespace {

using nlohmann::ordered_json;
using test::expect_valid_page;
using test::sample_log;
using test::write_run;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;

class ReportPageTest : public ::testing::Test {
 protected:
  RunRecord run(const std::string& name, const std::string& log, const std::string& lr = "0.5") {
    return load_run(write_run(folder_ / name, log, lr));
  }
  test::TemporaryFolder folder_;
};

TEST_F(ReportPageTest, ASingleRunHasSummaryChartsSystemAndFiles) {
  const std::string page = report_page({run("r", sample_log(3))}, folder_ / "r");
  expect_valid_page(page);
  for (const char* part :
       {"75.00 %", "A&lt;100&gt;", "2.0 GB", "lr.lr", "href=\"params.json\"", "class=\"notice\""})
    EXPECT_THAT(page, HasSubstr(part));
  EXPECT_EQ(test::occurrences(page, "<svg"), 9);
}

TEST_F(ReportPageTest, AFinishedRunHasNoNotice) {
  write_run(folder_ / "r", sample_log(3));
  write_file(folder_ / "r/summary.json", R"({"top_1":0.71234})");
  const std::string page = report_page({load_run(folder_ / "r")}, folder_ / "r");
  EXPECT_THAT(page, HasSubstr("71.23 %"));
  EXPECT_THAT(page, Not(HasSubstr("class=\"notice\"")));
}

TEST_F(ReportPageTest, TheWorstClassesAreNamed) {
  write_run(folder_ / "r", sample_log(3));
  ordered_json names, images, correct;
  for (int i = 0; i < 12; ++i) {
    names.push_back(fmt::format("<class{}>", i));
    images.push_back(i == 3 ? 0 : 100);
    correct.push_back(i == 3 ? 0 : 95 - 7 * i);
  }
  const ordered_json summary = {
      {"top_1", 0.5},
      {"classes", {{"names", names}, {"images", images}, {"top_1_correct", correct}}}};
  write_file(folder_ / "r/summary.json", summary.dump());
  const std::string page = report_page({load_run(folder_ / "r")}, folder_ / "r");
  expect_valid_page(page);
  EXPECT_LT(page.find("11 &lt;class11&gt;"), page.find("10 &lt;class10&gt;"));
  EXPECT_THAT(page, HasSubstr("18.00 %"));
  EXPECT_THAT(page, HasSubstr("1 &lt;class1&gt;"));
  EXPECT_THAT(page, Not(HasSubstr("&lt;class3&gt;"))) << "this class has no images";
  EXPECT_THAT(page, Not(HasSubstr("&lt;class0&gt;"))) << "the best of eleven classes is left out";
}

TEST_F(ReportPageTest, AClassNamedByItsIndexIsShownOnce) {
  write_run(folder_ / "r", sample_log(1));
  write_file(folder_ / "r/summary.json",
             R"({"top_1":0.5,"classes":{"names":["0","cat","3",""],"images":[8,8,8,8],)"
             R"("top_1_correct":[1,2,3,4]}})");
  std::vector<std::string> names;
  for (const ClassAccuracy& row : class_accuracies(load_run(folder_ / "r")))
    names.push_back(row.name);
  EXPECT_THAT(names, ElementsAre("0", "1 cat", "2 3", "3"));
}

TEST_F(ReportPageTest, TheMetricThatDecidesIsNamed) {
  write_run(folder_ / "r", sample_log(1));
  write_file(folder_ / "r/run.json",
             R"({"best_metric":{"name":"mse","higher_is_better":false},"epochs":1})");
  const std::string page = report_page({load_run(folder_ / "r")}, folder_ / "r");
  EXPECT_THAT(page, HasSubstr("mse, lower"));
  EXPECT_THAT(page, Not(HasSubstr("higher_is_better")));
}

TEST_F(ReportPageTest, ARunDecidedByTopFiveShowsItsBestEpochByTopFive) {
  // top-1 is best in the second epoch, top-5 in the first.
  const auto run = [&](const std::string& name, const std::string& metric) {
    write_run(folder_ / name,
              "{\"epoch\":0,\"top_1\":0.5,\"top_5\":0.875}\n"
              "{\"epoch\":1,\"top_1\":0.625,\"top_5\":0.75}\n");
    write_file(folder_ / name / "run.json",
               fmt::format(R"({{"best_metric":{{"name":"{}","higher_is_better":true}}}})", metric));
    return load_run(folder_ / name);
  };
  const std::vector<RunRecord> by_top_5 = {run("a", "top_5"), run("b", "top_5")};
  EXPECT_THAT(report_page({by_top_5[0]}, {}),
              HasSubstr("<b>75.00 %</b><span>top-5</span><small>best 87.50 % in epoch 1"));
  EXPECT_THAT(report_page(by_top_5, {}), HasSubstr(">top-5</th><th class=\"number\">top-1</th>"));
  const RunRecord by_top_1 = run("c", "top_1");
  EXPECT_THAT(report_page({by_top_1}, {}),
              HasSubstr("<b>62.50 %</b><span>top-1</span><small>best 62.50 % in epoch 2"));
  EXPECT_THAT(report_page({by_top_5[0], by_top_1}, {}),
              HasSubstr(">top-1</th><th class=\"number\">top-5</th>"));
}

TEST_F(ReportPageTest, AClassifierWithAnotherMetricShowsItFirstAndThenItsAccuracy) {
  std::string log = sample_log(3);
  const std::string loss = "\"val_loss\":1.5", f1_macro = "\"f1_macro\":0.625,";
  for (std::size_t at = log.find(loss); at != std::string::npos;
       at = log.find(loss, at + f1_macro.size() + 1))
    log.insert(at, f1_macro);
  const auto page_of = [&](const std::string& metric, bool higher) {
    write_run(folder_ / metric, log);
    write_file(folder_ / metric / "run.json",
               fmt::format(R"({{"best_metric":{{"name":"{}","higher_is_better":{}}},"epochs":3}})",
                           metric, higher));
    return report_page({load_run(folder_ / metric)}, folder_ / metric);
  };
  const std::string f1 = page_of("f1_macro", true);
  expect_valid_page(f1);
  EXPECT_THAT(f1, HasSubstr("<b>0.625</b><span>f1_macro</span><small>best 0.625 in epoch 1"));
  EXPECT_THAT(f1, HasSubstr("<b>75.00 %</b><span>top-1</span>"));
  EXPECT_LT(f1.find("aria-label=\"f1_macro"), f1.find("aria-label=\"Accuracy"));
  EXPECT_EQ(test::occurrences(f1, "<svg"), 10);
  const std::string by_loss = page_of("val_loss", false);
  EXPECT_EQ(test::occurrences(by_loss, "<span>validation loss</span>"), 1);
  EXPECT_THAT(by_loss, HasSubstr("<b>75.00 %</b><span>top-1</span>"));
  // The losses of training and validation are in two charts instead of one.
  EXPECT_EQ(test::occurrences(by_loss, "<svg"), 10);
  EXPECT_LT(by_loss.find("aria-label=\"Validation loss"), by_loss.find("aria-label=\"Accuracy"));
  const std::string both =
      report_page({load_run(folder_ / "f1_macro"), load_run(folder_ / "f1_macro")}, {});
  EXPECT_THAT(both, HasSubstr(">f1_macro</th><th class=\"number\">top-1</th>"));
  EXPECT_THAT(both, HasSubstr("aria-label=\"Top-1"));
}

TEST_F(ReportPageTest, WithoutAccuraciesTheMetricAndTheLossAreShownOnce) {
  const auto page_of = [&](const std::string& metric) {
    write_run(folder_ / metric, "{\"epoch\":0,\"mse\":0.5,\"val_loss\":0.25,\"train_loss\":1}\n");
    write_file(
        folder_ / metric / "run.json",
        fmt::format(R"({{"best_metric":{{"name":"{}","higher_is_better":false}},"epochs":1}})",
                    metric));
    return report_page({load_run(folder_ / metric)}, folder_ / metric);
  };
  EXPECT_THAT(page_of("mse"), HasSubstr("<b>0.5</b><span>mse</span>"));
  EXPECT_THAT(page_of("mse"), HasSubstr("<b>0.25</b><span>validation loss</span>"));
  EXPECT_THAT(page_of("mse"), Not(HasSubstr("top-1")));
  EXPECT_EQ(test::occurrences(page_of("val_loss"), "<span>validation loss</span>"), 1);
}

TEST_F(ReportPageTest, RunsWithoutAccuraciesOrACommonMetricAreComparedByTheirLoss) {
  const auto load = [&](const std::string& metric, double loss) {
    write_run(folder_ / metric,
              fmt::format("{{\"epoch\":0,\"{}\":0.5,\"val_loss\":{}}}\n", metric, loss));
    write_file(
        folder_ / metric / "run.json",
        fmt::format(R"({{"best_metric":{{"name":"{}","higher_is_better":false}},"epochs":1}})",
                    metric));
    return load_run(folder_ / metric);
  };
  const std::string page = report_page({load("mse", 0.25), load("mae", 0.75)}, {});
  EXPECT_THAT(page, HasSubstr(">validation loss</th>"));
  EXPECT_THAT(page, HasSubstr("<b>0.25</b>")) << "the lower loss is the better one";
  EXPECT_THAT(page, Not(HasSubstr("<b>0.75</b>")));
  EXPECT_THAT(page, Not(HasSubstr("top-1")));
}

TEST_F(ReportPageTest, TheLoadersTimesAreTheLastTotals) {
  const auto shares = [&](const std::string& log) {
    const std::string page = report_page({run("r", log)}, folder_ / "r");
    const std::size_t chart = page.find("What the loader");
    return page.substr(chart, page.find("</svg>", chart) - chart);
  };
  const auto epoch = [](int number, int decoding, int ahead) {
    return fmt::format(
        "{{\"epoch\":{},\"loader_time\":{{\"decoding\":{},\"reading\":0,\"blocked\":0,"
        "\"ahead\":{}}}}}\n",
        number, decoding, ahead);
  };
  EXPECT_EQ(shares(epoch(0, 8, 4) + epoch(1, 17, 7)), shares(epoch(1, 17, 7)));
  EXPECT_NE(shares(epoch(0, 8, 4) + epoch(1, 17, 7)), shares(epoch(0, 8, 4)));
}

TEST_F(ReportPageTest, WithoutACommonMetricTheHighestTop1IsTheBest) {
  write_run(folder_ / "a", sample_log(1));
  write_file(folder_ / "a/run.json",
             R"({"best_metric":{"name":"mse","higher_is_better":false},"epochs":1})");
  const std::string page =
      report_page({load_run(folder_ / "a"), run("b", sample_log(3))}, folder_.path());
  EXPECT_THAT(page, HasSubstr("<b>75.00 %</b>"));
  EXPECT_THAT(page, Not(HasSubstr("<b>25.00 %</b>")));
}

TEST_F(ReportPageTest, ALossThatRanAwayHasALogarithmicAxis) {
  const auto axis = [&](const std::string& name, double last) {
    const std::string log = fmt::format(
        "{{\"epoch\":0,\"train_loss\":2.5}}\n{{\"epoch\":1,\"train_loss\":{}}}\n", last);
    return test::occurrences(report_page({run(name, log)}, {}), "logarithmic");
  };
  EXPECT_EQ(axis("near", 49), 0);
  EXPECT_EQ(axis("far", 51), 1);
  EXPECT_EQ(axis("down", 0.02), 1);
  EXPECT_EQ(axis("below", -300), 0) << "a negative loss has no logarithm";
}

TEST_F(ReportPageTest, SeveralRunsAreComparedByTheKeysThatDiffer) {
  const std::vector<RunRecord> runs = {run("a", sample_log(3)), run("b", sample_log(2), "2.0")};
  EXPECT_THAT(differing_keys(runs), ElementsAre("lr.lr"));
  const std::string page = report_page(runs, folder_.path());
  expect_valid_page(page);
  EXPECT_THAT(page, HasSubstr("href=\"b/params.json\""));
  const auto json = report_json(runs);
  EXPECT_EQ(json.at("runs").size(), 2U);
  EXPECT_EQ(json.at("runs")[1].at("epochs").size(), 2U);
  EXPECT_EQ(json.at("differences").at("lr.lr").dump(), "[0.5,2.0]");
}

TEST_F(ReportPageTest, LinksToRunsAreUrls) {
  const std::string page =
      report_page({run("a#1 50%", sample_log(1)), run("b:2", sample_log(1))}, folder_.path());
  EXPECT_THAT(page, HasSubstr("href=\"a%231%2050%25/params.json\""));
  EXPECT_THAT(page, HasSubstr("href=\"b%3A2/params.json\""));
}

TEST_F(ReportPageTest, IsValidForLogsTruncatedAnywhere) {
  const std::string log = sample_log(2);
  for (std::size_t size = 0; size <= log.size(); size += 37)
    expect_valid_page(report_page({run("r", log.substr(0, size))}, folder_ / "r"));
}

TEST_F(ReportPageTest, IsValidForAnyFileContents) {
  const std::string hostile = "</title><script>alert(1)</script>\\u0001\\u0000";
  const std::string line =
      "{\"epoch\":0,\"top_1\":1e308,\"top_5\":-1e308,\"train_loss\":null,"
      "\"train_time\":0,\"images\":-5,\"resolution\":1e-320}\n";
  write_run(folder_ / "<b>&", line + line);
  write_file(folder_ / "<b>&" / "params.json",
             "{\"" + hostile + "\":\"" + hostile + "\",\"model.arch\":[1]}");
  write_file(folder_ / "<b>&" / "run.json",
             "{\"" + hostile + "\":\"" + hostile + "\",\"steps_per_epoch\":-1}");
  write_file(folder_ / "<b>&" / "summary.json",
             "{\"top_1\":\"x\",\"val_images\":[],\"classes\":{\"names\":{},\"images\":[1,\"x\",3],"
             "\"top_1_correct\":[-1,2,null]}}");
  const RunRecord record = load_run(folder_ / "<b>&");
  expect_valid_page(report_page({record}, {}));
  expect_valid_page(report_page({record, record}, folder_.path()));
}

class ReportCommandTest : public ReportPageTest {
 protected:
  static int precast(const std::vector<std::string>& args, std::string* out = nullptr) {
    std::vector<std::string> all = {test::bin_dir() + "/precast", "report"};
    all.insert(all.end(), args.begin(), args.end());
    test::Program program(all);
    const int code = program.wait();
    if (out != nullptr) *out = program.out;
    return code;
  }
};

TEST_F(ReportCommandTest, WritesIntoTheRunsFolderOrWhereItIsTold) {
  write_run(folder_ / "a", sample_log(1));
  write_run(folder_ / "b", sample_log(1));
  EXPECT_EQ(precast({folder_ / "a"}), 0);
  EXPECT_TRUE(std::filesystem::exists(folder_ / "a/report.html"));
  EXPECT_EQ(precast({folder_.path()}), static_cast<int>(ExitCode::usage))
      << "two runs need --output";
  EXPECT_EQ(precast({folder_.path(), "-o", folder_ / "both.html"}), 0);
  EXPECT_TRUE(std::filesystem::exists(folder_ / "both.html"));
  std::string out;
  EXPECT_EQ(precast({folder_ / "b", "--json"}, &out), 0);
  EXPECT_EQ(nlohmann::json::parse(out).at("runs")[0].at("name"), "b");
  EXPECT_FALSE(std::filesystem::exists(folder_ / "b/report.html"));
}

TEST_F(ReportCommandTest, RunsWithTheSameNameAreNamedByTheirFolders) {
  for (const char* path : {"x/a/seed0", "x/b/seed0", "x/single", "y/a/seed0"})
    write_run(folder_ / path, sample_log(1));
  const auto names = [&](const std::vector<std::string>& args) {
    std::string out;
    EXPECT_EQ(precast(args, &out), 0);
    std::vector<std::string> found;
    const auto report = nlohmann::json::parse(out);
    for (const auto& one : report.at("runs")) found.push_back(one.at("name"));
    return found;
  };
  const std::string x = folder_ / "x", y = folder_ / "y";
  EXPECT_THAT(names({x, "--json"}), ElementsAre("a/seed0", "b/seed0", "single"));
  EXPECT_THAT(names({x + "/", "--json"}), ElementsAre("a/seed0", "b/seed0", "single"));
  EXPECT_THAT(names({x, y, "--json"}),
              ElementsAre(x + "/a/seed0", "b/seed0", "single", y + "/a/seed0"));
  EXPECT_THAT(names({x + "/a/seed0", y + "/a/seed0", "--json"}),
              ElementsAre(x + "/a/seed0", y + "/a/seed0"));
}

TEST(HtmlPageTest, ClosesWhatIsOpenAndEscapesAllText) {
  HtmlPage page("<t>", "<s>");
  page.figures({{"<v>", "<l>", "<n>"}});
  page.section("<h>");
  page.begin_details("<d>");
  page.table({.columns = {{"<c>"}, {"n", true}}, .rows = {{{"<x>", "a\"b.html", true}}, {}}});
  page.section("next");
  page.begin_details("never closed");
  page.paragraph("<p>");
  page.notice("<!");
  expect_valid_page(page.text());
  EXPECT_THAT(page.text(), HasSubstr("<b><a href=\"a%22b.html\">&lt;x&gt;</a></b>"));
  page.section("after text()");
  expect_valid_page(page.text());
}

}  // namespace
}  // namespace precast::tools
