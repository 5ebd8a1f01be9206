// The help of all commands, and the texts that are generated from it.
#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <filesystem>
#include <fstream>
#include <map>
#include <nlohmann/json.hpp>
#include <set>
#include <sstream>

#include "tests/support/message_matchers.h"
#include "tests/support/paths.h"
#include "tests/support/temporary_folder.h"
#include "tests/support/text_file.h"
#include "tests/tools/precast_run.h"
#include "tools/cli/command_help.h"
#include "tools/cli/old_spellings.h"

namespace precast::tools {
namespace {

using testing::HasSubstr;
using testing::UnorderedElementsAre;

const std::string kPrecast = test::bin_dir() + "/precast";
const std::string kPrecastTrain = test::bin_dir() + "/precast-train";

bool has_train() {
  return std::filesystem::exists(kPrecastTrain);
}

std::vector<std::string> words_of(const std::string& text) {
  std::istringstream stream(text);
  return {std::istream_iterator<std::string>(stream), {}};
}

/// The commands of a program, from `PROGRAM help --json`.
std::vector<CommandHelp> commands_of(const std::string& program) {
  test::Program process({program, "help", "--json"});
  EXPECT_EQ(process.wait(), 0) << process.err;
  std::vector<CommandHelp> commands;
  std::istringstream lines(process.out);
  for (std::string line; std::getline(lines, line);) {
    const auto json = nlohmann::ordered_json::parse(line);
    if (json.contains("usage")) commands.push_back(parse_help_json(json));
  }
  return commands;
}

std::vector<CommandHelp> all_commands() {
  auto commands = commands_of(kPrecast);
  if (has_train())
    for (CommandHelp& command : commands_of(kPrecastTrain)) commands.push_back(std::move(command));
  return commands;
}

TEST(HelpTest, EachOptionHasOneMeaningAndEachMeaningOneOption) {
  std::map<std::string, std::set<std::string>> meanings, names;
  for (const CommandHelp& command : all_commands()) {
    for (const OptionHelp& option : command.options) {
      meanings[option.name].insert(option.meaning());
      names[option.meaning()].insert(option.name);
    }
  }
  for (const auto& [name, all] : meanings)
    EXPECT_EQ(all.size(), 1U) << "--" << name << ": " << testing::PrintToString(all);
  for (const auto& [meaning, all] : names)
    EXPECT_EQ(all.size(), 1U) << meaning << ": " << testing::PrintToString(all);
}

TEST(HelpTest, OptionsHaveHyphensAndOldSpellingsAreNoOptions) {
  for (const CommandHelp& command : all_commands()) {
    for (const OptionHelp& option : command.options) {
      if (option.name.find('.') == std::string::npos) {
        EXPECT_EQ(option.name.find('_'), std::string::npos) << command.name << ' ' << option.name;
      }
      const OldSpelling* const old = find_old_spelling(command.name, option.name, "other");
      EXPECT_TRUE(old == nullptr) << command.name << " --" << option.name;
    }
  }
}

TEST(HelpTest, EachOldSpellingStillWorksAndNamesTheNewOne) {
  ASSERT_FALSE(old_spellings().empty());
  for (const OldSpelling& one : old_spellings()) {
    const std::string command(one.command);
    if ((command == "bench step" || command == "bench allreduce") && !has_train()) continue;
    std::vector<std::string> args = words_of(command);
    args.push_back("--" + std::string(one.old) +
                   (one.value.empty() ? "" : "=" + std::string(one.value)));
    args.emplace_back("--help");
    const auto run = test::precast_run(args);
    EXPECT_EQ(run.code, 0) << command << " --" << one.old << ": " << run.err;
    EXPECT_THAT(run.err, HasSubstr("--" + std::string(one.now))) << command << " --" << one.old;
    EXPECT_THAT(run.out, HasSubstr("--" + std::string(one.now))) << command << " --" << one.old;
  }
}

TEST(HelpTest, EachCommandHasExamplesAndExitCodes) {
  for (const CommandHelp& command : all_commands()) {
    EXPECT_FALSE(command.examples.empty()) << command.name;
    EXPECT_GE(command.exit_codes.size(), 5U) << command.name;
    for (const Example& example : command.examples) {
      EXPECT_THAT(example.command, testing::StartsWith("precast " + command.name));
      EXPECT_LE(example.command.size(), 78U) << example.command;
    }
  }
}

TEST(HelpTest, TheOptionsOfEveryExampleAreKnown) {
  for (const CommandHelp& command : all_commands()) {
    for (const Example& example : command.examples) {
      if (example.command.find_first_of("|>") != std::string::npos) continue;
      test::Program process({"/bin/sh", "-c", test::bin_dir() + "/" + example.command + " --help"});
      EXPECT_EQ(process.wait(), 0) << example.command << process.err;
    }
  }
}

TEST(HelpTest, AGroupNameAloneListsItsCommands) {
  for (const auto& [args, code] : std::vector<std::pair<std::vector<std::string>, int>>{
           {{"bench"}, 2}, {{"bench", "--help"}, 0}, {{"help", "bench"}, 0}}) {
    const auto run = test::precast_run(args);
    EXPECT_EQ(run.code, code);
    for (const char* command : {"bench loader", "bench decode", "bench step"})
      EXPECT_THAT(run.out, HasSubstr(command));
    EXPECT_EQ(run.out.find("preview"), std::string::npos);
  }
  EXPECT_THAT(test::precast_run({"new"}).out, HasSubstr("new plugin"));
  EXPECT_EQ(test::precast_run({}).code, 2);
  EXPECT_EQ(test::precast_run({"help"}).code, 0);
  EXPECT_EQ(test::precast_run({"help"}).out, test::precast_run({"--help"}).out);
  EXPECT_EQ(test::precast_run({"help", "bench", "loader"}).out,
            test::precast_run({"bench", "loader", "--help"}).out);
  EXPECT_THAT(test::precast_run({"bench", "laoder"}).err, HasSubstr("bench loader"));
  EXPECT_EQ(test::precast_run({"bench", "laoder"}).code, 2);
  EXPECT_EQ(test::precast_run({"help", "wirte"}).code, 2);
  EXPECT_EQ(test::precast_run({"-V"}).out, test::precast_run({"--version"}).out);
}

TEST(HelpTest, InternalCommandsAreInNoList) {
  if (!has_train()) GTEST_SKIP() << "precast has no internal commands";
  // The internal commands are `versions`, for doctor, and `bench recipe_loader`, for `bench loader
  // RECIPE.yaml`.
  for (const std::vector<std::string>& args :
       {std::vector<std::string>{"help"}, {"help", "--json"}, {"help", "bench"}}) {
    std::vector<std::string> all = {kPrecastTrain};
    all.insert(all.end(), args.begin(), args.end());
    test::Program process(all);
    EXPECT_EQ(process.wait(), 0) << process.err;
    EXPECT_THAT(process.out, HasSubstr("bench stages"));
    EXPECT_THAT(process.out, testing::Not(HasSubstr("recipe_loader")));
    EXPECT_THAT(process.out, testing::Not(HasSubstr("\n  versions ")));
    EXPECT_THAT(process.out, testing::Not(HasSubstr("\"versions\"")));
  }
}

/// The table is generated with `precast help --options > docs/options.md`.
TEST(HelpTest, TheTableOfOptionsIsCurrent) {
  if (!has_train()) GTEST_SKIP() << "the table also has the options of precast-train";
  EXPECT_EQ(test::read_text(test::source_dir() + "/docs/options.md"),
            test::precast_run({"help", "--options"}).out);
}

TEST(HelpTest, ManualPagesAreRoff) {
  const test::TemporaryFolder folder;
  const auto made = test::precast_run({"help", "--man-pages", folder.path().string()});
  ASSERT_EQ(made.code, 0) << made.err;
  EXPECT_TRUE(std::filesystem::exists(folder / "precast.1"));
  EXPECT_TRUE(std::filesystem::exists(folder / "precast-bench-loader.1"));
  const std::string page = test::read_text(folder / "precast-write.1");
  EXPECT_EQ(page, test::precast_run({"help", "--man", "write"}).out);
  std::istringstream lines(page);
  const std::set<std::string> known = {".TH", ".SH", ".TP", ".PP", ".br", ".nf", ".fi"};
  for (std::string line; std::getline(lines, line);)
    if (line.starts_with(".")) {
      EXPECT_TRUE(known.contains(line.substr(0, line.find(' ')))) << line;
    }
  for (const char* section : {".SH NAME", ".SH SYNOPSIS", ".SH OPTIONS", ".SH EXIT STATUS"})
    EXPECT_THAT(page, HasSubstr(section));
  EXPECT_THAT(page, HasSubstr("\\-\\-page\\-size"));
}

/// The completions that bash offers at the end of `line`.
std::vector<std::string> completed(const std::string& script, const std::string& line) {
  std::string words;
  for (const std::string& word : words_of(line)) words += "'" + word + "' ";
  if (line.ends_with(' ')) words += "''";
  const std::string text = ". '" + script + "'\nCOMP_WORDS=(" + words +
                           ")\nCOMP_CWORD=$((${#COMP_WORDS[@]} - 1))\n_precast\n"
                           "printf '%s\\n' \"${COMPREPLY[@]}\"\n";
  test::Program bash({"/bin/bash", "-c", text});
  EXPECT_EQ(bash.wait(), 0) << bash.err;
  return words_of(bash.out);
}

TEST(CompletionTest, BashCompletesCommandsOptionsAndKeys) {
  const test::TemporaryFolder folder;
  const std::string script = (folder / "precast").string();
  const auto made = test::precast_run({"completion", "bash"});
  ASSERT_EQ(made.code, 0) << made.err;
  std::ofstream(script) << made.out;
  EXPECT_THAT(completed(script, "precast wr"), UnorderedElementsAre("write"));
  EXPECT_THAT(completed(script, "precast bench l"), UnorderedElementsAre("loader"));
  EXPECT_THAT(completed(script, "precast help insp"), UnorderedElementsAre("inspect"));
  EXPECT_THAT(completed(script, "precast help bench lo"), UnorderedElementsAre("loader"));
  EXPECT_THAT(completed(script, "precast help new "), testing::Contains("plugin"));
  EXPECT_THAT(completed(script, "precast help write "), testing::IsEmpty());
  EXPECT_THAT(completed(script, "precast help bench --opt"), UnorderedElementsAre("--options"));
  EXPECT_THAT(completed(script, "precast write SOURCE OUT --page"),
              UnorderedElementsAre("--page-size"));
  EXPECT_THAT(completed(script, "precast bench loader FILE --pro"),
              UnorderedElementsAre("--processes"));
  EXPECT_THAT(completed(script, "precast write SOURCE OUT --image.max"),
              UnorderedElementsAre("--image.max_resolution"));
  EXPECT_THAT(completed(script, "precast inspect "), testing::IsEmpty());
  if (!has_train()) return;
  EXPECT_THAT(completed(script, "precast train R.yaml --valid"),
              UnorderedElementsAre("--validation."));
  EXPECT_THAT(completed(script, "precast grid S.yaml --training.epo"),
              UnorderedElementsAre("--training.epochs="));
}

TEST(CompletionTest, AnUnknownShellIsAnError) {
  const auto made = test::precast_run({"completion", "fish"});
  EXPECT_EQ(made.code, 2);
  EXPECT_THAT(made.err, test::Names("SHELL", "'fish'", "bash", "zsh"));
  EXPECT_EQ(made.err.find("--SHELL"), std::string::npos);
}

TEST(CompletionTest, ZshParsesItsScript) {
  const auto made = test::precast_run({"completion", "zsh"});
  ASSERT_EQ(made.code, 0) << made.err;
  EXPECT_THAT(made.out, testing::StartsWith("#compdef precast"));
  if (!std::filesystem::exists("/usr/bin/zsh"))
    GTEST_SKIP() << "no /usr/bin/zsh: apt-get install zsh";
  const test::TemporaryFolder folder;
  std::ofstream(folder / "_precast") << made.out;
  test::Program zsh({"/usr/bin/zsh", "-n", (folder / "_precast").string()});
  EXPECT_EQ(zsh.wait(), 0) << zsh.err;
}

/// The wait status of a program whose standard output is a pipe that nobody reads.
int status_without_reader(const std::vector<std::string>& arguments, const std::string& errors) {
  int ends[2];
  EXPECT_EQ(::pipe2(ends, O_CLOEXEC), 0);
  ::close(ends[0]);
  posix_spawn_file_actions_t actions;
  ::posix_spawn_file_actions_init(&actions);
  ::posix_spawn_file_actions_adddup2(&actions, ends[1], STDOUT_FILENO);
  ::posix_spawn_file_actions_addopen(&actions, STDERR_FILENO, errors.c_str(), O_WRONLY | O_CREAT,
                                     0600);
  std::vector<char*> argv;
  for (const std::string& one : arguments) argv.push_back(const_cast<char*>(one.c_str()));
  argv.push_back(nullptr);
  pid_t process = 0;
  EXPECT_EQ(::posix_spawn(&process, argv[0], &actions, nullptr, argv.data(), environ), 0);
  int status = 0;
  ::waitpid(process, &status, 0);
  ::posix_spawn_file_actions_destroy(&actions);
  ::close(ends[1]);
  return status;
}

TEST(CommandTest, AClosedPipeEndsAProgramQuietly) {
  const test::TemporaryFolder folder;
  std::vector<std::vector<std::string>> commands = {{kPrecast, "--version"},
                                                    {kPrecast, "help"},
                                                    {kPrecast, "doctor", "--json"},
                                                    {kPrecast, "write", "--help"}};
  if (has_train())
    commands.insert(
        commands.end(),
        {{kPrecast, "list"}, {kPrecast, "train", "--help-keys"}, {kPrecastTrain, "--version"}});
  for (std::size_t i = 0; i < commands.size(); ++i) {
    const std::string errors = (folder / std::to_string(i)).string();
    const int status = status_without_reader(commands[i], errors);
    EXPECT_TRUE(WIFSIGNALED(status) && WTERMSIG(status) == SIGPIPE)
        << testing::PrintToString(commands[i]) << status;
    EXPECT_EQ(test::read_text(errors), "") << testing::PrintToString(commands[i]);
  }
}

}  // namespace
}  // namespace precast::tools
