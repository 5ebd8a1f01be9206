#include "tools/commands/new_recipe.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>

#include "data/beton/file_info.h"
#include "data/beton/format.h"
#include "data/jobs/write_dataset.h"
#include "data/write/number_fields.h"
#include "data/write/shaped_fields.h"
#include "data/write/writer.h"
#include "framework/core/config/node.h"
#include "framework/core/error.h"
#include "tests/support/message_matchers.h"
#include "tests/support/temporary_folder.h"
#include "tests/support/text_file.h"

namespace precast::tools {
namespace {

using test::Names;
using testing::ThrowsMessage;

/// Names files relative to the current folder, as users do.
class NewRecipeTest : public testing::Test {
 protected:
  NewRecipeTest() { std::filesystem::current_path(folder_.path()); }
  ~NewRecipeTest() override { std::filesystem::current_path(before_); }

  /// Writes raw square images with label = i % classes.
  static void write(const std::string& path, std::int64_t samples, int side_px,
                    const std::vector<std::string>& classes) {
    data::BetonLayout layout;
    layout.info = data::file_info_text({.classes = {{"label", classes}}, .written = {}});
    data::BetonWriter writer(
        path, {{"image", data::FieldType::image}, {"label", data::FieldType::integer}},
        static_cast<std::uint64_t>(samples), layout);
    for (std::int64_t i = 0; i < samples; ++i) {
      std::vector<data::EncodedValue> values(2);
      values[0].metadata.resize(data::kImageMetadataBytes);
      values[0].metadata[0] = std::byte{1};
      data::store(values[0].metadata.data() + data::kImageWidthAt,
                  static_cast<std::uint16_t>(side_px));
      data::store(values[0].metadata.data() + data::kImageHeightAt,
                  static_cast<std::uint16_t>(side_px));
      values[0].blob.resize(static_cast<std::size_t>(side_px) * static_cast<std::size_t>(side_px) *
                            3);
      values[1].metadata.resize(8);
      data::store(values[1].metadata.data(), i % static_cast<std::int64_t>(classes.size()));
      writer.add(values);
    }
    writer.finish();
  }
  /// Writes pixels of 36 x 20 px and int fields. @param fields the name of each field, and the
  /// number k of its values: sample i has the value i % k.
  static void write_pixels(const std::string& path, std::uint64_t samples,
                           const std::vector<std::pair<std::string, std::uint64_t>>& fields) {
    std::vector<data::FieldPlan> plans = {
        {"image", [] {
           return std::make_unique<data::PixelsField>(
               data::FieldTag{.kind = data::FieldTag::Kind::pixels, .dtype = "|u1", .channels = 1});
         }}};
    for (const auto& [name, values] : fields)
      plans.push_back({name, [] { return std::make_unique<data::IntField>(); }});
    (void)data::write_dataset(
        path, plans, samples,
        [&](std::uint64_t i) {
          data::Sample sample{
              "x",
              {data::ArrayInput{.format = {.dtype = "|u1", .shape = {20, 36, 1}},
                                .elements = std::vector<std::byte>(20 * 36, std::byte{7})}}};
          for (const auto& [name, values] : fields)
            sample.values.emplace_back(static_cast<std::int64_t>(i % values));
          return sample;
        },
        {});
  }
  static ConfigNode recipe(const std::string& path) {
    Diagnostics diagnostics;
    ConfigNode node = parse_yaml_file(path, diagnostics);
    EXPECT_THAT(diagnostics.errors(), testing::IsEmpty());
    return node;
  }
  static std::string value(const ConfigNode& node, const char* section, const char* key) {
    const ConfigNode* found = node.find(section);
    found = found == nullptr ? nullptr : found->find(key);
    return found == nullptr ? "none" : found->scalar;
  }

  std::filesystem::path before_ = std::filesystem::current_path();
  test::TemporaryFolder folder_;
};

TEST_F(NewRecipeTest, SuitsSmallImages) {
  write("train set.beton", 100, 28, {"ant", "bee"});
  write("val.beton", 20, 28, {"ant", "bee"});
  ASSERT_EQ(run_new_recipe({"--train-dataset", "train set.beton", "--val-dataset", "val.beton"}),
            0);
  const ConfigNode node = recipe("recipe.yaml");
  EXPECT_EQ(value(node, "data", "train_dataset"), "train set.beton");
  EXPECT_EQ(value(node, "data", "val_dataset"), "val.beton");
  EXPECT_EQ(value(node, "model", "arch"), "layers");
  EXPECT_EQ(value(node, "resolution", "max_res"), "28");
  EXPECT_EQ(value(node, "validation", "resolution"), "28");
  EXPECT_EQ(value(node, "training", "batch_size"), "8");
}

TEST_F(NewRecipeTest, SuitsPhotographs) {
  write("t.beton", 40, 200, {"ant", "bee"});
  write("v.beton", 8, 200, {"ant", "bee"});
  ASSERT_EQ(run_new_recipe({"mine", "--train-dataset", "t.beton", "--val-dataset", "v.beton"}), 0);
  const ConfigNode node = recipe("mine.yaml");
  EXPECT_EQ(value(node, "model", "arch"), "resnet18");
  EXPECT_EQ(value(node, "resolution", "max_res"), "128");
  EXPECT_EQ(value(node, "validation", "resolution"), "160");
  EXPECT_EQ(value(node, "training", "batch_size"), "8");
}

TEST_F(NewRecipeTest, CommandsQuoteANameWithSpaces) {
  write("t.beton", 4, 28, {"ant", "bee"});
  testing::internal::CaptureStdout();
  const int code =
      run_new_recipe({"my rec", "--train-dataset", "t.beton", "--val-dataset", "t.beton"});
  const std::string printed = testing::internal::GetCapturedStdout();
  ASSERT_EQ(code, 0);
  EXPECT_THAT(printed, testing::HasSubstr("precast train 'my rec.yaml'\n"));
  EXPECT_THAT(test::read_text("my rec.yaml"),
              testing::HasSubstr("#   precast train 'my rec.yaml'\n"));
}

TEST_F(NewRecipeTest, TakesPixelsIfThereIsNoImageField) {
  write_pixels("p.beton", 24, {{"label", 3}});
  ASSERT_EQ(run_new_recipe({"--train-dataset", "p.beton", "--val-dataset", "p.beton"}), 0);
  const ConfigNode node = recipe("recipe.yaml");
  EXPECT_EQ(value(node, "model", "arch"), "layers");
  EXPECT_EQ(value(node, "resolution", "max_res"), "20") << "the shorter side";
}

TEST_F(NewRecipeTest, WarnsOfAFieldWithALabelForEachSample) {
  const auto warnings = [](const std::string& file, const std::string& name) {
    testing::internal::CaptureStderr();
    EXPECT_EQ(run_new_recipe({name, "--train-dataset", file, "--val-dataset", file}), 0);
    return testing::internal::GetCapturedStderr();
  };
  write_pixels("ids.beton", 40, {{"id", 40}, {"kind", 3}});
  EXPECT_THAT(warnings("ids.beton", "a"), Names("ids.beton", "'id'", 40, "data.targets", "kind"));
  write_pixels("only.beton", 40, {{"id", 21}});
  EXPECT_THAT(warnings("only.beton", "b"), Names("'id'", 21, 40, "--class-column"));
  // Half as many classes as samples, few samples, or class names: no warning.
  write_pixels("half.beton", 40, {{"id", 20}});
  EXPECT_THAT(warnings("half.beton", "c"), testing::IsEmpty());
  write_pixels("few.beton", 20, {{"id", 20}});
  EXPECT_THAT(warnings("few.beton", "d"), testing::IsEmpty());
  write("named.beton", 24, 28, std::vector<std::string>(24, "ant"));
  EXPECT_THAT(warnings("named.beton", "e"), testing::IsEmpty());
}

TEST_F(NewRecipeTest, RefusesOtherClassesAndFilesThatExist) {
  write("t.beton", 4, 28, {"ant", "bee"});
  write("v.beton", 4, 28, {"bee", "cat"});
  EXPECT_THAT(
      [] {
        (void)run_new_recipe({"--train-dataset", "t.beton", "--val-dataset", "v.beton"});
      },
      ThrowsMessage<ConfigError>(Names("label 0", "'ant'", "'bee'", "--class-names")));
  EXPECT_FALSE(std::filesystem::exists("recipe.yaml"));
  EXPECT_THROW((void)run_new_recipe({"--train-dataset", "t.beton"}), ConfigError);
  ASSERT_EQ(run_new_recipe({"--train-dataset", "t.beton", "--val-dataset", "t.beton"}), 0);
  EXPECT_THAT(
      [] {
        (void)run_new_recipe({"--train-dataset", "t.beton", "--val-dataset", "t.beton"});
      },
      ThrowsMessage<ConfigError>(Names("recipe.yaml")));
}

}  // namespace
}  // namespace precast::tools
