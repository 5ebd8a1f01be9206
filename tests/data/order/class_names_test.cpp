#include "data/order/class_names.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <vector>

#include "data/beton/file_info.h"
#include "data/beton/reader.h"
#include "data/order/order.h"
#include "framework/core/error.h"
#include "tests/data/beton/synthetic_beton.h"
#include "tests/support/message_matchers.h"
#include "tests/support/temporary_folder.h"

namespace precast::data {
namespace {

using test::Names;
using testing::ElementsAre;
using testing::IsEmpty;
using testing::ThrowsMessage;

TEST(ClassNames, ASplitMayLackTheLastClassesButNotRenumberThem) {
  const std::vector<std::string> train = {"ant", "bee", "cat", "dog"};
  EXPECT_THAT(class_conflict(train, train), IsEmpty());
  EXPECT_THAT(class_conflict(train, {"ant", "bee"}), IsEmpty());
  EXPECT_THAT(class_conflict(train, {}), IsEmpty());
  EXPECT_THAT(class_conflict({}, train), IsEmpty());
  // A folder with only two of the four classes would number them 0 and 1.
  EXPECT_THAT(class_conflict(train, {"bee", "dog"}), Names("label 0", "'ant'", "'bee'", 2, 4));
  EXPECT_THAT(class_conflict(train, {"ant", "cat", "bee", "dog"}),
              Names("label 1", "'bee'", "'cat'", "order"));
  EXPECT_THAT(class_conflict(train, {"ant", "bee", "cow"}), Names("label 2", "'cat'", "'cow'"));
  EXPECT_THAT(class_conflict({"ant"}, {"ant", "bee"}), Names("label 1", "'bee'"));
}

TEST(ClassNames, LabelsOfAName) {
  const std::vector<std::string> names = {"crane", "dog", "crane"};
  EXPECT_THAT(labels_of_class("--classes", "crane", names, "f"), ElementsAre(0, 2));
  EXPECT_THAT([&] { (void)labels_of_class("--classes", "dgo", names, "f.beton"); },
              ThrowsMessage<ConfigError>(Names("--classes", "f.beton", "'dgo'", "'dog'")));
  EXPECT_THAT([&] { (void)labels_of_class("--classes", "dog", {}, "f.beton"); },
              ThrowsMessage<ConfigError>(Names("--classes", "f.beton", "'dog'")));
  // The error does not list a thousand names.
  const std::vector<std::string> many(1000, "n01440764");
  EXPECT_THAT([&] { (void)labels_of_class("x", "tench", many, "f"); },
              ThrowsMessage<ConfigError>(testing::Not(testing::HasSubstr("n01440764"))));
}

TEST(ClassNames, LabelsOfTheSameName) {
  EXPECT_EQ(find_duplicate_name({}), std::nullopt);
  EXPECT_EQ(find_duplicate_name({"a", "b"}), std::nullopt);
  EXPECT_EQ(find_duplicate_name({"a", "b", "c", "b", "a"}), std::pair(1L, 3L));
}

TEST(ClassNames, ClassesThatASubsetLacks) {
  const test::TemporaryFolder folder;
  // label = i % 5
  test::write_made_beton(folder / "x.beton",
                         {.samples = 50, .width = 1, .height = 1, .classes = 5});
  const BetonReader reader(folder / "x.beton");
  const auto all = labels_of(reader, 1, SampleSet(0, 50));
  EXPECT_THAT(all, ElementsAre(0, 1, 2, 3, 4));
  const auto some = labels_of(reader, 1, select_samples(reader, {.subset = "2"}));
  EXPECT_THAT(absent_labels(all, some), ElementsAre(2, 3, 4));
  EXPECT_EQ(class_list_text({2, 3, 4}, {"a", "b", "c"}, 2), "2 (c), 3 and 1 more");
}

TEST(ClassNames, FilesOfADatasetGiveALabelTheSameName) {
  const test::TemporaryFolder folder;
  const auto write = [&](const char* name, const FileInfo& info) {
    test::write_int_beton(folder / name, {.fields = {"label"}, .rows = {{0}}, .info = info});
    return folder / name;
  };
  const auto dogs = write("dogs", {.classes = {{"label", {"husky", "pug"}}}, .written = {}});
  const auto more = write("more", {.classes = {{"label", {"husky"}}}, .written = {}});
  const auto cats = write("cats", {.classes = {{"label", {"husky", "siam"}}}, .written = {}});
  const auto none = write("none", {});
  using Paths = std::vector<std::filesystem::path>;
  EXPECT_NO_THROW(check_common_classes(BetonReader(Paths{dogs, none, more}), 0));
  EXPECT_THAT(
      [&] {
        check_common_classes(BetonReader(Paths{dogs, none, cats}), 0);
      },
      ThrowsMessage<ConfigError>(Names("label 1", "'pug'", "'siam'", "dogs", "cats")));
}

}  // namespace
}  // namespace precast::data
