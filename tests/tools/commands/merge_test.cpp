#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <map>
#include <nlohmann/json.hpp>

#include "data/beton/file_info.h"
#include "data/beton/reader.h"
#include "tests/data/beton/synthetic_beton.h"
#include "tests/support/message_matchers.h"
#include "tests/tools/commands/subset_test.h"

namespace precast::tools {
namespace {

using testing::HasSubstr;

class MergeTest : public SubsetTest {
 protected:
  using Names = std::vector<std::string>;
  /// A file with only a label field, in which each of `names` occurs once.
  std::string named(const std::string& name, const Names& names,
                    const std::map<std::string, std::string>& written = {},
                    bool with_names = true) {
    test::IntBeton made{.fields = {"label"}};
    if (with_names) made.info.classes["label"] = names;
    made.info.written = written;
    for (std::size_t i = 0; i < names.size(); ++i)
      made.rows.push_back({static_cast<std::int64_t>(i)});
    test::write_int_beton(folder_ / name, made);
    return (folder_ / name).string();
  }
  /// A file with the fields `id` and `class`, of which only the second one has class names.
  std::string ids_and_classes(const std::string& name,
                              const std::vector<std::vector<std::int64_t>>& rows,
                              const Names& names) {
    test::IntBeton made{.fields = {"id", "class"}, .rows = rows};
    if (!names.empty()) made.info.classes["class"] = names;
    test::write_int_beton(folder_ / name, made);
    return (folder_ / name).string();
  }
  static std::vector<std::int64_t> labels_of(const std::string& file, std::size_t field = 0) {
    const data::BetonReader reader(file);
    std::vector<std::int64_t> labels;
    for (std::uint64_t i = 0; i < reader.size(); ++i) labels.push_back(reader.integer(i, field));
    return labels;
  }
  [[nodiscard]] Names names_of_merged() const {
    return data::class_names_of(data::BetonReader(out()), 0);
  }

  static nlohmann::json merge(std::vector<std::string> arguments) {
    return json_of("merge", std::move(arguments));
  }
};

TEST_F(MergeTest, FilesFollowEachOtherAndPagesMayDiffer) {
  const std::string b = (folder_ / "b.beton").string();
  test::write_made_beton(
      b, {.samples = 7, .width = 5, .height = 6, .classes = 7, .page_bytes = 1U << 22U});
  const auto report = merge({in_, b, in_, out()});
  EXPECT_EQ(report["samples"], 187);
  EXPECT_EQ(report["from"].size(), 3U);
  const data::BetonReader first(in_);
  const data::BetonReader second(b);
  const data::BetonReader all(out());
  EXPECT_EQ(all.header().page_bytes, 1U << 22U);
  EXPECT_EQ(all.integer(89, 1), first.integer(89, 1));
  EXPECT_EQ(all.integer(95, 1), 5);
  EXPECT_TRUE(std::ranges::equal(all.blob(95, 0), second.blob(5, 0)));
  EXPECT_EQ(all.image_size(96, 0).height, 6);
  EXPECT_TRUE(std::ranges::equal(all.blob(186, 0), first.blob(89, 0)));
}

TEST_F(MergeTest, LabelsOfAFileCanBeginWhereThoseBeforeEnd) {
  merge({in_, in_, out(), "--label-rule", "offset"});
  const data::BetonReader all(out());
  for (const std::uint64_t i : {0U, 4U, 89U}) {
    EXPECT_EQ(all.integer(i, 1), i % 3);
    EXPECT_EQ(all.integer(90 + i, 1), 3 + i % 3);
  }
}

TEST_F(MergeTest, ClassesOfTheSameNameCanBeOne) {
  const std::string a = named("a.beton", {"cat", "dog"});
  const std::string b = named("b.beton", {"bird", "cat", "fish"});
  merge({a, b, out(), "--label-rule", "by-name"});
  EXPECT_THAT(labels_of(out()), testing::ElementsAre(0, 1, 2, 0, 3));
  EXPECT_EQ(names_of_merged(), (Names{"cat", "dog", "bird", "fish"}));
  merge({a, b, out(), "--label-rule", "offset"});
  EXPECT_THAT(labels_of(out()), testing::ElementsAre(0, 1, 2, 3, 4));
  EXPECT_EQ(names_of_merged(), (Names{"cat", "dog", "bird", "cat", "fish"}));
  const auto nameless = test::precast_run({"merge", in_, in_, out("c"), "--label-rule", "by-name"});
  EXPECT_EQ(nameless.code, 3);
  EXPECT_THAT(nameless.err, test::Names(in_, 3, 0));
}

TEST_F(MergeTest, LabelsThatFilesNameDifferentlyAreKeptOnlyIfThatIsAskedFor) {
  const std::string a = named("a.beton", {"cat", "dog"});
  const std::string b = named("b.beton", {"cat", "bird"});
  const auto run = test::precast_run({"merge", a, b, out()});
  EXPECT_EQ(run.code, 2);
  EXPECT_THAT(run.err, test::Names(a, b, "label 1", "dog", "bird"));
  merge({a, b, out(), "--label-rule", "keep"});
  EXPECT_EQ(names_of_merged(), Names{});
  merge({a, named("c.beton", {"cat", "dog", "fish"}), out()});
  EXPECT_EQ(names_of_merged(), (Names{"cat", "dog", "fish"}));
  select({out(), out("d"), "--samples", "1"});
  EXPECT_EQ(data::class_names_of(data::BetonReader(out("d")), 0), (Names{"cat", "dog", "fish"}));
}

TEST_F(MergeTest, ClassesNeedNotBeInTheFirstIntField) {
  const std::string a = ids_and_classes("a.beton", {{1, 0}, {2, 1}}, {"cat", "dog"});
  const std::string b = ids_and_classes("b.beton", {{3, 0}, {4, 1}}, {"dog", "fish"});
  for (const Names& options : {Names{}, {"--label-rule", "offset", "--label-field", "id"}}) {
    Names arguments = {"merge", a, b, out()};
    arguments.insert(arguments.end(), options.begin(), options.end());
    const auto run = test::precast_run(arguments);
    EXPECT_EQ(run.code, 2) << testing::PrintToString(options);
    EXPECT_THAT(run.err, test::Names(a, b, "label 0", "'class'", "cat", "dog",
                                     "--label-field class", "--label-rule"));
    EXPECT_TRUE(std::filesystem::is_empty(outputs_.path()));
  }
  merge({a, b, out(), "--label-rule", "by-name"});
  EXPECT_THAT(labels_of(out(), 0), testing::ElementsAre(1, 2, 3, 4));
  EXPECT_THAT(labels_of(out(), 1), testing::ElementsAre(0, 1, 1, 2));
  const auto names = [this] { return data::class_names_of(data::BetonReader(out()), 1); };
  EXPECT_EQ(names(), (Names{"cat", "dog", "fish"}));
  merge({a, b, out(), "--label-rule", "offset"});
  EXPECT_THAT(labels_of(out(), 0), testing::ElementsAre(1, 2, 3, 4));
  EXPECT_THAT(labels_of(out(), 1), testing::ElementsAre(0, 1, 2, 3));
  EXPECT_EQ(names(), (Names{"cat", "dog", "dog", "fish"}));
  const auto kept = merge({a, b, out(), "--label-rule", "keep"});
  EXPECT_EQ(names(), Names{});
  EXPECT_THAT(kept["names_left_out"].get<std::string>(), test::Names(a, b, "'class'"));
}

TEST_F(MergeTest, TheLabelFieldIsTheOneThatAnyFileNames) {
  const std::string numbers = ids_and_classes("a.beton", {{1, 0}, {2, 1}}, {});
  const std::string names = ids_and_classes("b.beton", {{3, 0}, {4, 1}}, {"cat", "dog"});
  merge({numbers, names, out(), "--label-rule", "offset"});
  EXPECT_THAT(labels_of(out(), 0), testing::ElementsAre(1, 2, 3, 4));
  EXPECT_THAT(labels_of(out(), 1), testing::ElementsAre(0, 1, 2, 3));
}

TEST_F(MergeTest, NamesAreKeptOnlyIfAllFilesHaveThem) {
  const std::string a = named("a.beton", {"cat", "dog"});
  const std::string b = named("b.beton", {"x", "y"}, {}, false);
  for (const char* rule : {"keep", "offset"}) {
    const auto report = merge({a, b, out(), "--label-rule", rule});
    EXPECT_EQ(names_of_merged(), Names{}) << rule;
    EXPECT_THAT(report["names_left_out"].get<std::string>(), HasSubstr(b)) << rule;
  }
  EXPECT_FALSE(merge({b, b, out()}).contains("names_left_out"));
  const std::string c = named("c.beton", {"", "dog"});
  const auto run = test::precast_run({"merge", a, c, out("c"), "--label-rule=by-name"});
  EXPECT_EQ(run.code, 3);
  EXPECT_THAT(run.err, test::Names(c, "label 0"));
}

TEST_F(MergeTest, EqualNamesInOneFileAreNotOneClass) {
  const std::string a = named("a.beton", {"cat", "dog"});
  const std::string b = named("b.beton", {"dog", "\xEF\xBF\xBD", "fish", "\xEF\xBF\xBD"});
  const auto run = test::precast_run({"merge", a, b, out(), "--label-rule=by-name"});
  EXPECT_EQ(run.code, 3);
  EXPECT_THAT(run.err, test::Names(b, "labels 1 and 3", "--label-rule"));
  EXPECT_TRUE(std::filesystem::is_empty(outputs_.path()));
}

TEST_F(MergeTest, OptionsThatAllFilesShareAreKept) {
  merge({named("a.beton", {"cat"}, {{"seed", "0"}, {"image.mode", "jpg"}, {"shuffle", "true"}}),
         named("b.beton", {"cat"}, {{"seed", "0"}, {"image.mode", "raw"}}), out()});
  const auto written = data::file_info_of(data::BetonReader(out())).written;
  EXPECT_EQ(written, (std::map<std::string, std::string>{{"seed", "0"}}));
}

TEST_F(MergeTest, MergingASplitRestoresTheDataset) {
  select({in_, out("a"), out("b"), "--split", "0.5,0.5"});
  merge({out("a"), out("b"), out("c")});
  auto ids = samples_of(out("c"));
  std::ranges::sort(ids);
  EXPECT_EQ(ids, samples_of(in_));
}

TEST_F(MergeTest, TheFirstDifferenceOfFieldsIsNamedWithItsFile) {
  const auto error = [&](const std::string& a, const std::string& b) {
    const auto run = test::precast_run({"merge", a, b, out()});
    EXPECT_EQ(run.code, 3) << run.err;
    EXPECT_TRUE(std::filesystem::is_empty(outputs_.path()));
    return run.err;
  };
  const std::string images = golden("img_raw_w1");
  EXPECT_THAT(error(in_, images), test::Names(images, 3, in_, 2));
  const std::string scalars = golden("scalars_only");
  EXPECT_THAT(error(scalars, in_),
              test::Names(in_, data::BetonReader(scalars).fields()[0].name, scalars, "image"));
}

TEST_F(MergeTest, WrongArgumentsEndWithCode2) {
  using Words = std::vector<std::string>;
  const std::vector<std::pair<Words, Words>> cases = {
      {{in_, out()}, {"precast merge A.beton B.beton... OUT.beton"}},
      {{in_, in_, in_}, {in_}},
      {{in_, in_, out(), "--label-rule", "ofset"}, {"--label-rule", "ofset", "offset"}},
      {{in_, in_, out(), "--label-rule", "offset", "--label-field", "x"},
       {"label_field", "x", in_}},
      {{in_, in_, out(), "--label-field", "label"}, {"--label-field", "--label-rule", "keep"}},
      {{in_, in_, out(), "--label-field", "label", "--label-rule", "keep"},
       {"--label-field", "--label-rule", "keep"}},
  };
  for (const auto& [options, facts] : cases) {
    std::vector<std::string> arguments = {"merge"};
    arguments.insert(arguments.end(), options.begin(), options.end());
    const auto run = test::precast_run(arguments);
    EXPECT_EQ(run.code, 2) << testing::PrintToString(options);
    EXPECT_THAT(run.err, test::NamesMatcher(facts));
    EXPECT_TRUE(std::filesystem::is_empty(outputs_.path()));
  }
}

}  // namespace
}  // namespace precast::tools
