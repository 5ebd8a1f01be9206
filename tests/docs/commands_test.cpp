#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <cctype>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <regex>
#include <sstream>

#include "tests/docs/markdown.h"
#include "tests/support/paths.h"
#include "tests/support/program.h"
#include "tests/support/temporary_folder.h"
#include "tests/support/text_file.h"

namespace precast::test {
namespace {

using std::filesystem::path;

const path kSource = test::source_dir();
/// A pattern that matches the sections of a recipe.
const std::string kSections =
    "(model|resolution|data|order|lr|schedule|loss|logging|validation|training|dist|pipeline|"
    "optimizer|checkpoint)";

const std::string kTrainPiece =
    "precast train piece.yaml --dry-run --train_samples=1281167 --model.num_classes=10 "
    "--logging.run_id=piece";

bool matches(const std::string& text, const std::string& pattern) {
  return std::regex_search(text, std::regex(pattern));
}

bool is_executable(const path& file) {
  return std::filesystem::is_regular_file(file) && ::access(file.c_str(), X_OK) == 0;
}

/// Runs the commands that a document quotes, in the document's order, in a sandbox with the files
/// that they name.
class DocumentTest : public testing::TestWithParam<std::string> {
 protected:
  DocumentTest() : text_(read_text(kSource / GetParam())), quoted_(quoted_in(text_)) {}

  struct Result {
    int code;
    std::string text;
  };
  Result bash(const std::string& script) const {
    const path file = sandbox_ / "script";
    std::ofstream(file) << "cd '" << (sandbox_ / "here").string() << "'\n" << script << '\n';
    Program program({"/bin/bash", file.string()},
                    {"SOURCE_FOLDER=" + test::source_dir(), "BUILD_FOLDER=" + test::build_dir()});
    const int code = program.wait();
    return {code, program.out + program.err};
  }
  /// Fills the sandbox, unless an earlier command has done so.
  void make_sandbox() {
    if (!std::filesystem::create_directory(sandbox_ / "here")) return;
    const Result made =
        bash("$SOURCE_FOLDER/tests/docs/sandbox.sh $SOURCE_FOLDER $BUILD_FOLDER " + GetParam());
    ASSERT_EQ(made.code, 0) << made.text;
  }
  /// Runs the commands, with the functions of stand_ins.sh in place of some programs. Appends
  /// `exit 0`, because a last line of the form `a && b` fails if `a` is false.
  void expect_runs(const Quoted& quoted, const std::string& commands) {
    make_sandbox();
    if (HasFatalFailure()) return;
    const Result result =
        bash("source $SOURCE_FOLDER/tests/docs/stand_ins.sh\n" + commands + "\nexit 0");
    EXPECT_EQ(result.code, 0) << where(quoted) << quoted.text << "\nran as: " << commands << "\n"
                              << result.text;
  }

  [[nodiscard]] std::string where(const Quoted& quoted) const {
    return GetParam() + ":" + std::to_string(quoted.line) + ": ";
  }
  void try_block(const Quoted& block);
  void try_usage(const Quoted& block);
  void try_yaml(const Quoted& block);
  void try_span(const Quoted& span);
  void try_key(const Quoted& span);
  void try_synopsis(const Quoted& span);

  TemporaryFolder sandbox_;
  std::string text_;
  std::vector<Quoted> quoted_;
  std::string help_;
};

void DocumentTest::try_block(const Quoted& block) {
  if (block.language == "sh") return expect_runs(block, block.text);
  if (block.language == "yaml") return try_yaml(block);
  if (block.language == "text") return try_usage(block);
  EXPECT_FALSE(matches(block.text, "(^|\n)(precast [a-z]|torchrun|cmake|(\\./)?tools/[a-z]+ +-)"))
      << where(block) << "commands without ```sh are not run:\n"
      << block.text;
}

/// Checks the commands of a synopsis line by line: their options must exist.
void DocumentTest::try_usage(const Quoted& block) {
  Quoted line = block;
  std::istringstream lines(block.text);
  for (; std::getline(lines, line.text); ++line.line)
    if (line.text.starts_with("precast ")) try_synopsis(line);
}

/// Checks a recipe, a sweep or a table. If the first line is a comment with a file name, the text
/// is saved under this name for later commands.
void DocumentTest::try_yaml(const Quoted& block) {
  std::smatch name;
  make_sandbox();
  const path file =
      sandbox_.path() / "here" /
      (std::regex_search(block.text, name, std::regex("^# (\\w+\\.yaml)\n")) ? name.str(1)
                                                                             : "block.yaml");
  std::ofstream(file) << block.text;
  const std::string quoted_file = fmt::format("'{}'", file.string());
  if (matches(block.text, "(^|\n)axes:")) {
    expect_runs(block, "precast grid " + quoted_file + " --dry-run");
  } else if (matches(block.text, "(^|\n)rows:")) {
    expect_runs(block, "precast reproduce " + quoted_file + " --dry-run");
  } else {
    expect_runs(block, "precast train " + quoted_file +
                           " --dry-run --train_samples=1281167 --logging.run_id=block");
  }
}

void DocumentTest::try_span(const Quoted& span) {
  const std::string text = std::regex_replace(span.text, std::regex("^([A-Z_]+=\\S+ )+"), "");
  const std::string program = text.substr(0, text.find(' '));
  // These commands cannot be run: words in capitals, `...` and `<` mark placeholders, and a command
  // with only options lacks its arguments. Plug-ins are built by examples_test, but not here.
  const bool synopsis =
      matches(text,
              "\\.\\.\\.|\\[-|<| [A-Z]+( |$)| (IN|A)\\.beton|\\.so\\b|my_net|salt_and_pepper") ||
      matches(text, "^precast( [a-z]+)+( --[a-z-]+)*$");
  if (matches(text, "^(--)?" + kSections + "\\.(?!h$|cpp$|json$|safetensors$)[a-z_]+$"))
    return try_key(span);
  if (matches(text, "^--" + kSections + "\\.") && !synopsis)
    return expect_runs(span, "precast train R.yaml --dry-run --logging.run_id=span " + text);
  if (matches(text, "^(methods|plugins|" + kSections + "): .") && !synopsis)
    return expect_runs(span, "printf %s '" + text + "' >piece.yaml; " + kTrainPiece);
  if (matches(text, "^precast [a-z]"))
    return synopsis ? try_synopsis(span) : expect_runs(span, text);
  if (matches(text, "^(ctest|torchrun --no-python|build/bin/) ?\\S"))
    return expect_runs(span, text);
  if (matches(program, "^(\\./)?tools/\\w") && is_executable(kSource / program))
    return expect_runs(span, text);
}

/// Checks that a recipe's key exists. `--help-keys` does not list all accepted keys of
/// ffcv-imagenet.
void DocumentTest::try_key(const Quoted& span) {
  make_sandbox();
  if (help_.empty()) help_ = bash("$BUILD_FOLDER/bin/precast train --help-keys").text;
  const std::string key = span.text.substr(span.text.starts_with("--") ? 2 : 0);
  if (!matches(help_, " " + key + "[ .\n]"))
    expect_runs(span, "precast train R.yaml --dry-run --" + key +
                          (key == "data.label_field"   ? "=label"
                           : key == "data.image_field" ? "=image"
                                                       : "=0"));
}

/// Checks a command that cannot run as written: the command and its options must exist.
void DocumentTest::try_synopsis(const Quoted& span) {
  std::smatch command;
  std::regex_search(
      span.text, command,
      std::regex("^precast ([a-z]+)( (loader|decode|ring|step|stages|allreduce|plugin|recipe))?"));
  std::string script = command.str() + " --help >help";
  if (matches(span.text, "--" + kSections + "\\."))
    script += "\nprecast train --help-keys | sed 's/^ */--/' >>help";
  const std::regex option("--(?!key=)[a-z][a-z_.-]*");
  for (std::sregex_iterator at(span.text.begin(), span.text.end(), option), end; at != end; ++at)
    script += "\ngrep -qE -e '" + at->str() + "\\b' help";
  expect_runs(span, script);
}

TEST_P(DocumentTest, WhatItQuotesRuns) {
  EXPECT_THAT(indented_code(text_, "precast "), testing::IsEmpty())
      << GetParam() << ": these lines are code: put them into ```sh";
  for (const Quoted& quoted : quoted_) {
    if (quoted.kind == Quoted::Kind::block) {
      try_block(quoted);
    } else {
      try_span(quoted);
    }
  }
}

TEST(ReadmeTest, CountsMethodsAndTransforms) {
  for (const char* kind : {"methods", "transforms"}) {
    Program list({test::bin_dir() + "/precast", "list", kind, "--json"});
    ASSERT_EQ(list.wait(), 0) << list.err;
    const auto count = nlohmann::json::parse(list.out).at(kind).size();
    EXPECT_THAT(read_text(kSource / "README.md"),
                testing::HasSubstr(fmt::format("[{} {}]", count, kind)));
  }
}

INSTANTIATE_TEST_SUITE_P(Tree, DocumentTest, testing::ValuesIn(documents(kSource)),
                         [](const auto& name) {
                           std::string text = name.param;
                           std::ranges::replace_if(
                               text, [](char c) { return std::isalnum(c) == 0; }, '_');
                           return text;
                         });

}  // namespace
}  // namespace precast::test
