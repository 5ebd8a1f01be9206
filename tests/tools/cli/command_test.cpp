// Behaviour that all commands share.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cerrno>
#include <cstring>

#include "tests/data/beton/golden_beton.h"
#include "tests/support/message_matchers.h"
#include "tests/support/temporary_folder.h"
#include "tests/tools/precast_run.h"

namespace precast::tools {
namespace {

using test::Names;
using testing::HasSubstr;

TEST(CommandTest, EveryCommandHasHelp) {
  const std::vector<std::pair<std::string, std::string>> options = {
      {"write", "--image.mode"}, {"index", "--every"},    {"inspect", "--label-values"},
      {"verify", "--deep"},      {"select", "--where"},   {"merge", "--label-rule"},
      {"sizes", "--ram"},        {"preview", "--crop"},   {"convert", "IN"},
      {"grid", "--status"},      {"reproduce", "--rows"}, {"report", "--json"},
      {"new", "new plugin"},     {"bench", "loader"},     {"doctor", "--json"}};
  const std::string commands = test::precast_run({"--help"}).out;
  for (const auto& [command, option] : options) {
    EXPECT_THAT(commands, HasSubstr("\n  " + command + " "));
    const auto run = test::precast_run({command, "--help"});
    EXPECT_EQ(run.code, 0) << command << run.err;
    EXPECT_THAT(run.out, Names("precast " + command, option));
  }
}

TEST(CommandTest, OutputThatIsLostEndsWithCode5) {
  const test::TemporaryFolder folder;
  const std::string file = test::put_golden_beton(folder.path(), "scalars_only");
  const std::string told = (folder / "told").string();
  for (const std::string& command :
       {"inspect " + file, "inspect --json " + file, std::string("--version")}) {
    EXPECT_EQ(test::precast_shell("", command + " >/dev/full 2>" + told), 5) << command;
    const auto bytes = test::read_bytes(told);
    EXPECT_THAT(std::string(reinterpret_cast<const char*>(bytes.data()), bytes.size()),
                HasSubstr(std::strerror(ENOSPC)));
  }
}

}  // namespace
}  // namespace precast::tools
