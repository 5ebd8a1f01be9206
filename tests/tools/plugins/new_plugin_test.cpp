#include "tools/plugins/new_plugin.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "framework/core/error.h"
#include "tests/support/message_matchers.h"
#include "tests/support/temporary_folder.h"
#include "tests/support/text_file.h"

namespace precast::tools {
namespace {

using testing::HasSubstr;

/// Runs in a separate folder, since the skeleton is written to the current folder.
class NewPluginTest : public testing::Test {
 protected:
  NewPluginTest() { std::filesystem::current_path(folder_.path()); }
  ~NewPluginTest() override { std::filesystem::current_path(before_); }

  std::filesystem::path before_ = std::filesystem::current_path();
  test::TemporaryFolder folder_;
};

TEST_F(NewPluginTest, NamesThatCannotBeBuiltAreRefusedAndNothingIsWritten) {
  for (const char* name : {"", "../net", "a/b", "MyNet", "2d_net", "_net", "my-net", "my net",
                           "\u00e9", "test", "all", "install", "help"}) {
    EXPECT_THROW((void)run_new_plugin({name}), ConfigError) << name;
  }
  EXPECT_TRUE(std::filesystem::is_empty(folder_.path()));
}

TEST_F(NewPluginTest, FolderThatExistsIsLeftAlone) {
  std::filesystem::create_directory("my_net");
  std::ofstream("my_net/my_net.cpp") << "mine";
  try {
    (void)run_new_plugin({"my_net"});
    FAIL() << "accepted";
  } catch (const ConfigError& error) {
    EXPECT_THAT(error.what(), test::Names("my_net"));
  }
  EXPECT_EQ(test::read_text("my_net/my_net.cpp"), "mine");
}

TEST_F(NewPluginTest, EveryNameIsFilledIn) {
  // A keyword is a valid name: the class for `class` is called Class.
  for (const char* name : {"class", "my_2d_net"}) {
    for (const char* kind : {"model", "method", "transform"}) {
      ASSERT_EQ(run_new_plugin({name, "--kind", kind}), 0);
      for (const auto& file : std::filesystem::directory_iterator(name))
        EXPECT_THAT(test::read_text(file.path()), testing::Not(HasSubstr("@"))) << file.path();
      EXPECT_TRUE(
          std::filesystem::exists(std::filesystem::path(name) / (std::string(name) + ".cpp")));
      std::filesystem::remove_all(name);
    }
  }
}

TEST_F(NewPluginTest, TypesHaveOtherNamesThanThePartsClass) {
  ASSERT_EQ(run_new_plugin({"options"}), 0);
  const std::string source = test::read_text("options/options.cpp");
  EXPECT_THAT(source, HasSubstr("struct Options : torch::nn::Module"));
  EXPECT_THAT(source, HasSubstr("struct OptionsOptions {"));
  EXPECT_THAT(source, testing::Not(HasSubstr("struct Options {")));
}

}  // namespace
}  // namespace precast::tools
