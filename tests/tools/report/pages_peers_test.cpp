// TensorBoard reads precast's event files, and a browser shows precast's pages.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "tests/support/paths.h"
#include "tests/support/program.h"
#include "tests/support/temporary_folder.h"
#include "tests/tools/report/run_folder_files.h"
#include "tools/experiments/reproduce/row_result.h"
#include "tools/experiments/reproduce/table_page.h"
#include "tools/report/event_sink.h"
#include "tools/report/report_page.h"

namespace precast::tools {
namespace {

using nlohmann::json;

constexpr const char* kReadEvents = R"(
import json, sys
from tensorboard.backend.event_processing.event_accumulator import EventAccumulator
events = EventAccumulator(sys.argv[1])
events.Reload()
print(json.dumps({tag: [[event.step, event.value] for event in events.Scalars(tag)] for tag in events.Tags()["scalars"]}))
)";

TEST(PagesPeersTest, TensorBoardReadsTheEventFileOfAResumedRun) {
  const std::string python = test::source_dir() + "/.venv-peers/bin/python";
  if (!std::filesystem::exists(python))
    GTEST_SKIP() << "no " << python << ": run tools/peers/setup";
  if (test::Program({python, "-c", "import tensorboard"}).wait() != 0)
    GTEST_SKIP() << "no tensorboard in .venv-peers: run tools/peers/setup";
  const test::TemporaryFolder folder;
  {
    EventSink sink(folder / kEventFile);
    for (int step = 0; step < 300; ++step)
      sink.write({{"step", step}, {"epoch", 0}, {"loss", 1.0 / (1 + step)}, {"current_lr", 1e-3}});
    const std::int64_t checkpoint = sink.position();
    sink.write({{"step", 300}, {"epoch", 0}, {"loss", 99}});
    sink.rewind(checkpoint);
    sink.write({{"epoch", 0}, {"steps", 300}, {"top_1", 0.75}, {"top_5", 1.0}});
  }
  test::Program reader({python, "-c", kReadEvents, (folder / kEventFile).string()});
  ASSERT_EQ(reader.wait(), 0) << reader.err;
  const json read = json::parse(reader.out);
  EXPECT_EQ(read.at("val/top_1"), json::parse("[[300, 0.75]]"));
  ASSERT_EQ(read.at("train/loss").size(), 300U);
  for (int step = 0; step < 300; ++step) {
    EXPECT_EQ(read.at("train/loss")[static_cast<std::size_t>(step)][0], step);
    EXPECT_FLOAT_EQ(read.at("train/loss")[static_cast<std::size_t>(step)][1].get<float>(),
                    1.0F / static_cast<float>(1 + step));
  }
  EXPECT_EQ(read.at("train/lr").size(), 300U);
}

TEST(PagesPeersTest, ABrowserShowsThePagesWithoutRequestsOrConsoleMessages) {
  if (test::Program({"/bin/sh", "-c", "command -v chromium && command -v python3"}).wait() != 0)
    GTEST_SKIP() << "no chromium: apt-get install chromium";
  const test::TemporaryFolder folder;
  const auto look = [&](const std::string& page) {
    test::Program browser({"/usr/bin/env", "python3",
                           test::source_dir() + "/tools/peers/screenshot", page,
                           folder / "picture.png"});
    const int code = browser.wait();
    return fmt::format("{} {}", code, browser.err);
  };
  const auto run = load_run(test::write_run(folder / "r", test::sample_log(3)));
  write_run_report(folder / "r");
  EXPECT_EQ(look(folder / "r/report.html"), "0 ");
  EXPECT_GT(std::filesystem::file_size(folder / "picture.png"), 10000U);
  write_file(folder / "both.html", report_page({run, run}, folder.path()));
  EXPECT_EQ(look(folder / "both.html"), "0 ");
  ResultTable table;
  table.title = "A table";
  table.sources = {{"paper", "A paper", "2022", "https://example.org"}};
  table.rows = {{.id = "r",
                 .model = "Net",
                 .published = {{.source = "paper", .top_1 = 0.75, .minutes = 12}}}};
  const std::map<std::string, TrialState> done = {
      {"r",
       {.status = TrialStatus::done,
        .figures = {{"top_1", 0.7}, {"train_minutes", 2}, {"eval_minutes", 1}}}}};
  const auto results = collect_results(
      {{&table.rows[0], {{.id = "r", .recipe = "", .settings = {}, .folder = folder.path()}}}},
      done);
  write_file(folder / "table.html", table_page(table, results));
  EXPECT_EQ(look(folder / "table.html"), "0 ");
  // This page makes a request and logs a message: look() must detect both.
  write_file(folder / "bad.html",
             "<script>console.log('word')</script><img src='file:///nowhere.png'/>");
  const std::string bad = look(folder / "bad.html");
  EXPECT_THAT(bad, ::testing::StartsWith("1 "));
  EXPECT_THAT(bad, ::testing::HasSubstr("file:///nowhere.png"));
  EXPECT_THAT(bad, ::testing::HasSubstr("console.log"));
}

}  // namespace
}  // namespace precast::tools
