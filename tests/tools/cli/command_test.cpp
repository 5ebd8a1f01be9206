// Behaviour that all commands share.
#include "tools/cli/command.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <nlohmann/json.hpp>
#include <stdexcept>

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

TEST(CommandTest, HelpAsJsonDescribesOneCommandOrAll) {
  const auto run = test::precast_run({"help", "--json", "write"});
  EXPECT_EQ(run.code, 0) << run.err;
  EXPECT_EQ(nlohmann::json::parse(run.out).at("name"), "write");
  EXPECT_EQ(test::precast_run({"help", "write", "--json"}).out, run.out);
  EXPECT_EQ(nlohmann::json::parse(test::precast_run({"help", "--json", "bench", "loader"}).out)
                .at("name"),
            "bench loader");
  EXPECT_THAT(test::precast_run({"help", "--json"}).out, HasSubstr("\n" + run.out));
  for (const std::vector<std::string>& args :
       std::vector<std::vector<std::string>>{{"help", "--json", "wriet"},
                                             {"help", "--json", "bench"},
                                             {"help", "--json", "--options"}}) {
    const auto refused = test::precast_run(args);
    EXPECT_EQ(refused.code, 2) << args.back();
    EXPECT_EQ(refused.out, "") << args.back();
    EXPECT_THAT(refused.err, Names(args.back()));
  }
}

TEST(CommandTest, AFailureKeepsItsCodeIfStandardErrorIsLost) {
  const int saved = dup(STDERR_FILENO);
  const int full = open("/dev/full", O_WRONLY);
  ASSERT_GE(dup2(full, STDERR_FILENO), 0);
  std::fputs("lost", stderr);
  std::fflush(stderr);
  const bool lost = std::ferror(stderr) != 0;
  const auto failure = describe_failure(std::make_exception_ptr(std::runtime_error("the cause")));
  dup2(saved, STDERR_FILENO);
  std::clearerr(stderr);
  close(full);
  close(saved);
  EXPECT_TRUE(lost);
  EXPECT_EQ(failure.text, "the cause");
  EXPECT_EQ(failure.exit_code, 1);
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
