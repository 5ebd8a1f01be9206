#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "framework/core/archive/weights_file.h"
#include "framework/core/file.h"
#include "tests/framework/core/archive/sample_tensors.h"
#include "tests/support/message_matchers.h"
#include "tests/support/program.h"
#include "tests/support/temporary_folder.h"

namespace precast::tools {
namespace {

using test::Names;

class ConvertTest : public testing::Test {
 protected:
  int convert(std::vector<std::string> arguments, std::vector<std::string> environment = {}) {
    arguments.insert(arguments.begin(), {std::string(PRECAST_BIN_DIR) + "/precast", "convert"});
    test::Program program(std::move(arguments), std::move(environment));
    const int code = program.wait();
    output = program.out;
    error = program.err;
    return code;
  }
  [[nodiscard]] std::string at(const std::string& name) const { return (folder_ / name).string(); }
  static std::string golden(const std::string& name) {
    return fmt::format("{}/torch/{}.pt", PRECAST_GOLDEN_DIR, name);
  }
  static std::string dump_of(const std::string& path) {
    return test::dump(load_weights(path).records());
  }
  [[nodiscard]] std::size_t count_files() const {
    return static_cast<std::size_t>(
        std::distance(std::filesystem::directory_iterator(folder_.path()), {}));
  }

  test::TemporaryFolder folder_;
  std::string output;
  std::string error;
};

TEST_F(ConvertTest, WhatTorchWroteGoesThereAndBack) {
  for (const char* name : {"state_dict", "plain_dict", "dtypes", "channels_last", "parameters",
                           "checkpoint", "checkpoint_protocol4"}) {
    ASSERT_EQ(convert({golden(name), at("a.safetensors")}), 0) << name << error;
    ASSERT_EQ(convert({at("a.safetensors"), at("b.pth")}), 0) << name << error;
    for (const char* made : {"a.safetensors", "b.pth"}) {
      EXPECT_EQ(dump_of(at(made)), test::golden_dump(name)) << name << made;
    }
    EXPECT_EQ(count_files(), 2U);
  }
}

TEST_F(ConvertTest, NamesOfWrappersAreUndoneAndTold) {
  auto records = test::sample_tensors();
  records.resize(4);
  const char* names[] = {"module.layer2.0.conv1.conv.weight", "module.layer2.0.conv1.blur_filter",
                         "module._orig_mod.fc.weight", "module.block.conv.weight"};
  for (std::size_t i = 0; i < records.size(); ++i) records[i].name = names[i];
  save_weights(at("in.safetensors"), records, {{"epoch", "16"}});
  ASSERT_EQ(convert({at("in.safetensors"), at("out.pt"), "--json"}), 0) << error;

  const auto report = nlohmann::json::parse(output);
  EXPECT_EQ(report["file"], at("out.pt"));
  EXPECT_EQ(report["tensors"], 3);
  EXPECT_EQ(report["tensor_bytes"],
            records[0].bytes.size() + records[2].bytes.size() + records[3].bytes.size());
  EXPECT_EQ(report["bytes"], std::filesystem::file_size(at("out.pt")));
  EXPECT_EQ(report["renamed"], 1);
  EXPECT_EQ(report["left_out"],
            (std::vector<std::string>{"layer2.0.conv1.blur_filter", "metadata epoch"}));
  records.erase(records.begin() + 1);
  records[0].name = "layer2.0.conv1.weight";
  records[1].name = "fc.weight";
  records[2].name = "block.conv.weight";
  EXPECT_EQ(dump_of(at("out.pt")), test::dump(records));

  ASSERT_EQ(convert({at("in.safetensors"), at("out.safetensors")}), 0);
  EXPECT_THAT(output, Names(at("out.safetensors"), 3, 1, "layer2.0.conv1.blur_filter"));
  EXPECT_EQ(load_weights(at("out.safetensors")).metadata().at("epoch"), "16");
}

TEST_F(ConvertTest, WhatHoldsNoWeightsEndsWithCode4AndWritesNothing) {
  write_file(at("text.pt"), "just some text");
  const auto whole = test::golden_file("state_dict");
  write_file(at("cut.pt"), {reinterpret_cast<const char*>(whole.data()), whole.size() / 2});
  const std::vector<std::pair<std::string, std::vector<std::string>>> cases = {
      {at("text.pt"), {"14"}},
      {at("cut.pt"), {}},
      {golden("legacy"), {"1.6"}},
      {golden("script"), {"TorchScript"}},
      {golden("no_tensors"), {"state_dict"}},
  };
  for (const auto& [in, facts] : cases) {
    write_file(at("out.safetensors"), "older");
    EXPECT_EQ(convert({in, at("out.safetensors")}), 4) << in;
    EXPECT_THAT(error, testing::AllOf(Names(in), test::NamesMatcher(facts)));
    EXPECT_EQ(output, "");
    EXPECT_EQ(read_file(at("out.safetensors")).size(), 5U) << "the older one stays";
    EXPECT_EQ(count_files(), 3U);
  }
}

TEST_F(ConvertTest, WhatCannotBeReadOrWrittenEndsWithCode5) {
  EXPECT_EQ(convert({at("none.pt"), at("out.pt")}), 5);
  EXPECT_THAT(error, Names(at("none.pt"), std::strerror(ENOENT)));
  EXPECT_EQ(convert({golden("state_dict"), at("no/out.pt")}), 5);
  EXPECT_THAT(error, Names("no/out.pt", std::strerror(ENOENT)));
  EXPECT_EQ(convert({golden("state_dict"), at("out.pt")},
                    {"PRECAST_FAILPOINTS=atomic_file.before_rename=error"}),
            5);
  EXPECT_EQ(count_files(), 0U);
}

TEST_F(ConvertTest, WrongArgumentsEndWithCode2) {
  EXPECT_EQ(convert({}), 2);
  EXPECT_THAT(error, Names("precast convert IN OUT"));  // text is the interface: a command
  EXPECT_EQ(convert({golden("state_dict")}), 2);
  EXPECT_EQ(convert({golden("state_dict"), at("out.onnx")}), 2);
  EXPECT_THAT(error, Names(at("out.onnx"), ".safetensors", ".pt", ".pth"));
  EXPECT_EQ(convert({golden("state_dict"), at("out.pt"), "--half"}), 2);
  save_weights(at("same.pt"), test::sample_tensors());
  std::filesystem::create_symlink("same.pt", at("link.pt"));
  EXPECT_EQ(convert({at("same.pt"), at("link.pt")}), 2);
  EXPECT_THAT(error, Names(at("same.pt"), at("link.pt")));
  EXPECT_EQ(convert({"--help"}), 0);
  EXPECT_THAT(output, Names("precast convert IN OUT"));  // text is the interface: a command
}

}  // namespace
}  // namespace precast::tools
