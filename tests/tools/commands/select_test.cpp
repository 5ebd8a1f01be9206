#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>

#include <filesystem>
#include <map>
#include <nlohmann/json.hpp>
#include <set>

#include "data/beton/file_info.h"
#include "data/beton/reader.h"
#include "data/write/writer.h"
#include "tests/support/message_matchers.h"
#include "tests/support/range_server.h"
#include "tests/tools/commands/subset_test.h"

namespace precast::tools {
namespace {

using test::Names;
using testing::Each;

class SelectTest : public SubsetTest {};

TEST_F(SelectTest, AllSamplesOfAFileThatFfcvWroteWithOneWorkerAreThatFileByteForByte) {
  for (const char* name : {"allfields_w1", "img_raw_w1", "img_prop_nette_w1", "masks_w1"}) {
    const std::string file = golden(name);
    select({file, out(), "--workers", "3", "--no-checksums"});
    EXPECT_TRUE(test::read_bytes(out()) == test::read_bytes(file)) << name;
    select({file, out("b")});
    select({out("b"), out(), "--no-checksums"});
    EXPECT_TRUE(test::read_bytes(out()) == test::read_bytes(file)) << name;
  }
}

TEST_F(SelectTest, EveryKindOfFieldIsCopiedFromFilesOfSeveralWorkersAndWithEmptyValues) {
  for (const char* name :
       {"allfields_w3_empty", "bytes_first_empty", "img_smart_w3", "scalars_only", "wds_w2"}) {
    const std::string file = golden(name);
    select({file, out()});
    const data::BetonReader before(file);
    const data::BetonReader after(out());
    ASSERT_EQ(after.size(), before.size());
    for (std::size_t f = 0; f < before.fields().size(); ++f) {
      const data::FieldType type = before.fields()[f].type;
      EXPECT_EQ(after.fields()[f].name, before.fields()[f].name);
      EXPECT_EQ(after.fields()[f].dtype, before.fields()[f].dtype);
      EXPECT_EQ(after.fields()[f].shape, before.fields()[f].shape);
      for (std::uint64_t i = 0; i < before.size(); ++i) {
        if (type == data::FieldType::integer) {
          EXPECT_EQ(after.integer(i, f), before.integer(i, f));
        } else if (type == data::FieldType::floating) {
          EXPECT_EQ(after.floating(i, f), before.floating(i, f));
        } else {
          EXPECT_TRUE(std::ranges::equal(after.blob(i, f), before.blob(i, f))) << name << ' ' << i;
        }
        if (type != data::FieldType::image) continue;
        EXPECT_EQ(after.image_mode(i, f), before.image_mode(i, f));
        EXPECT_EQ(after.image_size(i, f).width, before.image_size(i, f).width);
        EXPECT_EQ(after.image_size(i, f).height, before.image_size(i, f).height);
      }
    }
  }
}

TEST_F(SelectTest, PagesCanHaveAnotherSize) {
  const std::string file = golden("allfields_w3_empty");
  select({file, out(), "--page-size", "4194304"});
  EXPECT_EQ(data::BetonReader(out()).header().page_bytes, 4194304U);
}

TEST_F(SelectTest, ChoosesByNumbersByClassesAndByExpressions) {
  select({in_, out(), "--samples", "80:,5,0:3,2"});
  EXPECT_THAT(samples_of(out()),
              testing::ElementsAre(0, 1, 2, 5, 80, 81, 82, 83, 84, 85, 86, 87, 88, 89));
  select({in_, out(), "--samples", "0:9", "--classes", "0,2"});
  EXPECT_THAT(samples_of(out()), testing::ElementsAre(0, 2, 3, 5, 6, 8));
  select({in_, out(), "--where", "label in (1) and weight < 10 and width == 20 and mode == raw"});
  EXPECT_THAT(samples_of(out()), testing::ElementsAre(1, 4, 7));
}

TEST_F(SelectTest, DrawsAreRandomBySeedAndKeepTheFilesOrder) {
  select({in_, out(), "--count", "30"});
  const std::vector<int> first = samples_of(out());
  EXPECT_EQ(first.size(), 30U);
  EXPECT_TRUE(std::ranges::is_sorted(first));
  EXPECT_EQ(std::set<int>(first.begin(), first.end()).size(), 30U);
  select({in_, out(), "--fraction", "0.3333"});
  EXPECT_EQ(samples_of(out()), first);
  select({in_, out(), "--count", "30", "--seed", "1"});
  EXPECT_NE(samples_of(out()), first);
}

TEST_F(SelectTest, ASplitPutsEachSampleIntoOneFile) {
  const auto report =
      select({in_, out("a"), out("b"), out("c"), "--split", "0.7,0.2,0.1", "--stratify"});
  EXPECT_EQ(report["files"].size(), 3U);
  std::vector<int> all;
  std::map<std::string, std::array<int, 3>> classes;
  for (const char* name : {"a", "b", "c"}) {
    for (const int id : samples_of(out(name))) {
      all.push_back(id);
      ++classes[name].at(static_cast<std::size_t>(id % 3));
    }
  }
  std::ranges::sort(all);
  for (int i = 0; i < 90; ++i) EXPECT_EQ(all.at(static_cast<std::size_t>(i)), i);
  EXPECT_THAT(classes["a"], Each(testing::AllOf(testing::Ge(20), testing::Le(22))));
  EXPECT_THAT(classes["b"], Each(testing::AllOf(testing::Ge(5), testing::Le(7))));
  EXPECT_THAT(classes["c"], Each(testing::AllOf(testing::Ge(2), testing::Le(4))));
}

TEST_F(SelectTest, ShufflesBySeed) {
  select({in_, out("a"), "--shuffle", "--seed", "3"});
  select({in_, out("b"), "--shuffle", "--seed", "3", "--workers", "4"});
  EXPECT_TRUE(test::read_bytes(out("a")) == test::read_bytes(out("b")));
  const auto shuffled = samples_of(out("a"));
  EXPECT_FALSE(std::ranges::is_sorted(shuffled));
  EXPECT_EQ(std::set<int>(shuffled.begin(), shuffled.end()).size(), 90U);
}

TEST_F(SelectTest, ImageOptionsReencodeTheImages) {
  select({in_, out(), "--count", "5", "--image.mode", "jpg", "--image.max_resolution", "10"});
  const data::BetonReader reader(out());
  EXPECT_EQ(reader.image_mode(4, 0), data::ImageMode::jpg);
  EXPECT_EQ(reader.image_size(4, 0).width, 10);
  EXPECT_EQ(reader.image_size(4, 0).height, 5);
}

TEST_F(SelectTest, ImagesStoredAnewComeFromTheUrlWithItsQuery) {
  const std::string other = (folder_ / "other.beton").string();
  test::write_made_beton(other, {.samples = 9, .width = 30, .height = 20});
  test::RangeServer server(in_);
  server.set_faults(nlohmann::json{{"files", {{"v=2", other}}}}.dump());
  const auto run =
      test::precast_run({"select", server.url("x.beton?v=2"), out("remote"), "--image.mode", "raw"},
                        {"XDG_CACHE_HOME=" + (folder_ / "cache").string(), "no_proxy=127.0.0.1"});
  ASSERT_EQ(run.code, 0) << run.err;
  select({other, out("local"), "--image.mode", "raw"});
  EXPECT_TRUE(test::read_bytes(out("remote")) == test::read_bytes(out("local")));
}

TEST_F(SelectTest, WrongOptionsEndWithCode2AndWriteNothing) {
  using Words = std::vector<std::string>;
  const std::vector<std::pair<Words, Words>> cases = {
      {{"--samples", "90"}, {"--samples", "90", "'90'"}},
      {{"--samples", "5:5"}, {"--samples", "90", "5:5"}},
      {{"--samples", "1,,2"}, {"--samples", "1,,2"}},
      {{"--samples", "-1"}, {"--samples", "90", "-1"}},
      {{"--classes", "3"}, {"--classes", "3", "'3'"}},
      {{"--where", "lable < 3"}, {"--where", in_, "lable", "label"}},
      {{"--where", "label <"}, {"--where", "column 8", "label <"}},
      {{"--count", "0"}, {"--count", "1", "90", "0"}},
      {{"--count", "91"}, {"--count", "1", "90", "91"}},
      {{"--fraction", "0.001"}, {"--fraction", "0.001", "90"}},
      {{"--fraction", "nan"}, {"--fraction", "(0, 1]", "nan"}},
      {{"--count", "3", "--fraction", "0.5"}, {"--count", "--fraction"}},
      {{"--stratify"}, {"--stratify", "--count", "--fraction", "--split"}},
      {{"--split", "0.9,0.1"}, {"--split", "2", "1"}},
      {{"--split", "0.9,0.2", out("b")}, {"--split", "1", "0.9,0.2"}},
      {{"--split", "0.999,0.001", out("b")}, {"--split", "90"}},
      {{"--split", "0.5,0.5", out()}, {out()}},
      {{out("b")}, {"--split", "2"}},
      {{"--label-field", "image", "--classes", "1"}, {"label_field", "image", in_}},
      {{"--label-field", "nope"}, {"--label-field", "--classes", "--stratify"}},
      {{"--label-field", "label", "--count", "9"}, {"--label-field", "--classes", "--stratify"}},
      {{"--label-field", "nope", "--count", "9", "--stratify"}, {"label_field", "nope", in_}},
      {{"--image.quality", "0"}, {"--image.quality", "1", "100", "0"}},
      {{"--page-size", "3000000"}, {"page_size", "3000000"}},
  };
  for (const auto& [options, facts] : cases) {
    std::vector<std::string> arguments = {"select", in_, out()};
    arguments.insert(arguments.end(), options.begin(), options.end());
    const auto run = test::precast_run(arguments);
    EXPECT_EQ(run.code, 2) << testing::PrintToString(options);
    EXPECT_THAT(run.err, test::NamesMatcher(facts));
    EXPECT_TRUE(std::filesystem::is_empty(outputs_.path())) << testing::PrintToString(options);
  }
  EXPECT_EQ(test::precast_run({"select", in_, out(), "--where", "weight > 100"}).code, 3);
  const auto itself = test::precast_run({"select", in_, in_});
  EXPECT_EQ(itself.code, 2);
  EXPECT_EQ(test::occurrences(itself.err, in_), 2) << itself.err;
}

TEST_F(SelectTest, AnErrorOfAnExpressionOrOfADrawBeginsWithItsOptionAlone) {
  using Words = std::vector<std::string>;
  for (const Words& wrong : {Words{"--where", "lable < 3"}, Words{"--where", "label == 'cats'"},
                             Words{"--where", "weight == 'cats'"}, Words{"--samples", "random:91"},
                             Words{"--samples", "@" + out("none")}}) {
    const auto run = test::precast_run({"select", in_, out(), wrong[0], wrong[1]});
    EXPECT_EQ(run.code, 2) << wrong[1];
    EXPECT_THAT(run.err, Names(wrong[0]));
    for (const char* key : {"filter:", "subset:"})
      EXPECT_EQ(test::occurrences(run.err, key), 0) << run.err;
  }
}

TEST_F(SelectTest, IfOnePartCannotBeWrittenTheOthersAreRemoved) {
  const auto run =
      test::precast_run({"select", in_, out("a"), out("missing/b"), "--split", "0.5,0.5"});
  EXPECT_EQ(run.code, 5);
  EXPECT_THAT(run.err, Names("missing/b"));
  EXPECT_TRUE(std::filesystem::is_empty(outputs_.path()));
}

TEST_F(SelectTest, AFileThatCannotBeWrittenIsNamedOnce) {
  std::filesystem::create_directory(out("folder"));
  const auto run = test::precast_run({"select", in_, out("folder")});
  EXPECT_EQ(run.code, 5);
  EXPECT_EQ(test::occurrences(run.err, out("folder")), 1) << run.err;
}

TEST_F(SelectTest, APartThatWouldReplaceAFolderOrADeviceIsNamedWithItsKind) {
  std::filesystem::create_directory(out("x"));
  const std::vector<std::pair<std::string, std::string>> cases = {{out("x"), "folder"},
                                                                  {"/dev/null", "device"}};
  for (const auto& [path, kind] : cases) {
    const auto run = test::precast_run({"select", in_, out("a"), path, "--split", "0.5,0.5"});
    EXPECT_EQ(run.code, 5);
    EXPECT_THAT(run.err, Names(path, kind));
    EXPECT_FALSE(std::filesystem::exists(out("a")));
  }
}

TEST_F(SelectTest, WhereOnePartCannotBeWrittenOlderFilesStay) {
  select({in_, out("a"), "--samples", "7"});
  const auto old = test::read_bytes(out("a"));
  const auto run =
      test::precast_run({"select", in_, out("a"), out("missing/b"), "--split", "0.5,0.5"});
  EXPECT_EQ(run.code, 5);
  EXPECT_TRUE(test::read_bytes(out("a")) == old);
  EXPECT_FALSE(std::filesystem::is_empty(outputs_.path()));
  std::filesystem::remove(out("a"));
  EXPECT_TRUE(std::filesystem::is_empty(outputs_.path()));
}

TEST_F(SelectTest, PartsReplaceOlderFilesTheirChecksumsAndTheirIndex) {
  select({in_, out("a"), "--samples", "7", "--no-checksums"});
  ASSERT_EQ(test::precast_run({"verify", "--write-sums", out("a")}).code, 0);
  ASSERT_EQ(test::precast_run({"index", out("a")}).code, 0);
  ASSERT_TRUE(std::filesystem::exists(out("a.sum")));
  ASSERT_TRUE(std::filesystem::exists(out("a.jidx")));
  std::filesystem::create_symlink("a", outputs_ / "link");
  std::filesystem::copy_file(out("a.sum"), out("link.sum"));
  std::filesystem::copy_file(out("a.jidx"), out("link.jidx"));
  select({in_, out("link"), out("b"), "--split", "0.5,0.5"});
  EXPECT_TRUE(std::filesystem::is_symlink(out("link")));
  EXPECT_EQ(samples_of(out("a")).size(), 45U);
  EXPECT_FALSE(std::filesystem::exists(out("a.sum")));
  EXPECT_FALSE(std::filesystem::exists(out("a.jidx")));
  using Entries = std::filesystem::directory_iterator;
  EXPECT_EQ(std::distance(Entries(outputs_.path()), Entries()), 3);
}

TEST_F(SelectTest, TwoPartsMayNotBeTheSameFile) {
  const auto run = test::precast_run(
      {"select", in_, out("a"), (outputs_ / "." / "a").string(), "--split", "0.5,0.5"});
  EXPECT_EQ(run.code, 2);
  EXPECT_THAT(run.err, Names(outputs_ / "." / "a"));
}

TEST_F(SelectTest, AFileThatIsNoDatasetIsNotReplaced) {
  const std::string text = "0.jpg cat\n1.jpg dog\n and so on";
  test::write_bytes(out("list"), std::as_bytes(std::span(text)));
  for (const auto& arguments : std::vector<std::vector<std::string>>{
           {"select", in_, out("list")}, {"merge", in_, in_, out("list")}}) {
    const auto run = test::precast_run(arguments);
    EXPECT_EQ(run.code, 2);
    EXPECT_THAT(run.err, Names(out("list"), ".beton"));
  }
  EXPECT_EQ(test::read_bytes(out("list")).size(), text.size());
  std::filesystem::resize_file(out("list"), 0);
  select({in_, out("list")});
}

TEST_F(SelectTest, ClassesMayBeAnyNumbersUpToTheNamesOrTheLargestLabel) {
  const std::string file = (folder_ / "sparse.beton").string();
  data::BetonLayout layout;
  layout.info = data::file_info_text(
      {.classes = {{"label", std::vector<std::string>{"a", "b", "c", "d", "e"}}}, .written = {}});
  const auto write = [&](const std::vector<std::int64_t>& labels) {
    data::BetonWriter writer(file, {{"label", data::FieldType::integer}}, labels.size(), layout);
    for (const std::int64_t label : labels) {
      data::EncodedValue value;
      value.metadata.resize(sizeof label);
      data::store(value.metadata.data(), label);
      writer.add({&value, 1});
    }
    writer.finish();
  };
  // A list of all numbers in this range would not fit into memory.
  write({4, INT64_MAX - 1, 7, -3});
  select({file, out(), "--classes", "7:"});
  EXPECT_EQ(data::BetonReader(out()).size(), 2U);
  write({0, 1});
  select({file, out(), "--classes", "1:5"});
  EXPECT_EQ(data::BetonReader(out()).size(), 1U);
}

TEST_F(SelectTest, ReencodedImagesFitIntoPagesOfTheDefaultSize) {
  select({in_, out(), "--image.mode", "jpg"});
  EXPECT_EQ(data::BetonReader(out()).header().page_bytes, data::kDefaultPageBytes);
}

TEST_F(SelectTest, SignalsStopItWithTheirCodeAndNothingIsLeft) {
  // 40,000 images that are encoded again: seconds of work.
  test::write_made_beton(in_, {.samples = 40000, .width = 40, .height = 40});
  test::PrecastProgram program({"select", in_, out(), "--image.mode", "jpg", "--workers", "1"});
  EXPECT_TRUE(test::eventually([this] { return !std::filesystem::is_empty(outputs_.path()); }));
  ::kill(program.id(), SIGINT);
  EXPECT_EQ(program.wait(), 128 + SIGINT) << program.err;
  EXPECT_THAT(program.err, Names(out()));
  EXPECT_TRUE(std::filesystem::is_empty(outputs_.path()));
}

TEST_F(SelectTest, ACopyHasChecksumsAndADamagedSampleIsFoundByThem) {
  select({in_, out()});
  EXPECT_FALSE(data::BetonReader(out()).sums().empty());
  auto bytes = test::read_bytes(out());
  const std::uint64_t at = data::BetonReader(out()).blob_offset(7, 0);
  bytes[at] ^= std::byte{1};
  test::write_bytes(out(), bytes);
  const auto run = test::precast_run({"select", out(), out("b")});
  EXPECT_EQ(run.code, 3);
  EXPECT_THAT(run.err, Names("sample 7"));
  EXPECT_EQ(test::occurrences(run.err, out()), 1) << run.err;
  EXPECT_FALSE(std::filesystem::exists(out("b")));
}

}  // namespace
}  // namespace precast::tools
