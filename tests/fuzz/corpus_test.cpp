// Replays tests/corpus: what a fuzz target once stumbled over, and inputs the goldens do not give.
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <vector>

#include "framework/core/file.h"
#include "tests/fuzz/targets.h"

namespace precast::fuzz {
namespace {

namespace fs = std::filesystem;

const fs::path kCorpus = fs::path(PRECAST_SOURCE_DIR) / "tests/corpus";

class CorpusTest : public ::testing::TestWithParam<std::string> {};

TEST_P(CorpusTest, EveryInputIsReadOrRefused) {
  const auto& target = targets().at(GetParam());
  if (!fs::exists(kCorpus / GetParam())) GTEST_SKIP() << "no inputs yet";
  for (const auto& item : fs::directory_iterator(kCorpus / GetParam())) {
    SCOPED_TRACE(item.path().filename().string());
    const std::vector<std::byte> input = read_file(item.path());
    EXPECT_NO_THROW(run(target, input));
  }
}

std::vector<std::string> names() {
  std::vector<std::string> all;
  for (const auto& [name, target] : targets()) all.push_back(name);
  return all;
}

INSTANTIATE_TEST_SUITE_P(Targets, CorpusTest, ::testing::ValuesIn(names()),
                         [](const auto& test) { return test.param; });

TEST(CorpusTest, EveryFolderBelongsToATarget) {
  for (const auto& item : fs::directory_iterator(kCorpus)) {
    EXPECT_TRUE(targets().contains(item.path().filename().string())) << item.path();
  }
}

}  // namespace
}  // namespace precast::fuzz
