// Replays tests/corpus: inputs that once made a fuzz target fail, and inputs that the goldens do
// not cover.
#include <gtest/gtest.h>

#include <filesystem>
#include <string>
#include <vector>

#include "framework/core/file.h"
#include "tests/fuzz/targets.h"
#include "tests/support/paths.h"

namespace precast::fuzz {
namespace {

namespace fs = std::filesystem;

const fs::path kCorpus = fs::path(test::source_dir()) / "tests/corpus";

class CorpusTest : public ::testing::TestWithParam<std::string> {};

TEST_P(CorpusTest, EveryInputIsReadOrRefused) {
  const auto target = targets().find(GetParam());
  ASSERT_NE(target, targets().end()) << "tests/corpus/" << GetParam() << " belongs to no target";
  for (const auto& item : fs::directory_iterator(kCorpus / GetParam())) {
    SCOPED_TRACE(item.path().filename().string());
    const std::vector<std::byte> input = read_file(item.path());
    EXPECT_NO_THROW(run(target->second, input));
  }
}

std::vector<std::string> folders() {
  std::vector<std::string> names;
  for (const auto& item : fs::directory_iterator(kCorpus)) names.push_back(item.path().filename());
  return names;
}

INSTANTIATE_TEST_SUITE_P(Targets, CorpusTest, ::testing::ValuesIn(folders()),
                         [](const auto& test) { return test.param; });

}  // namespace
}  // namespace precast::fuzz
