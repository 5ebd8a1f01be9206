#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <map>
#include <nlohmann/json.hpp>
#include <sstream>

#include "data/beton/file_info.h"
#include "data/beton/format.h"
#include "data/beton/json_text.h"
#include "data/beton/reader.h"
#include "data/decode/jpeg_index.h"
#include "data/write/writer.h"
#include "framework/core/error.h"
#include "tests/data/beton/golden_beton.h"
#include "tests/data/sources/sample_images.h"
#include "tests/support/message_matchers.h"
#include "tests/support/temporary_folder.h"
#include "tests/tools/precast_run.h"

namespace precast::tools {
namespace {

using test::Names;
using testing::AllOf;
using testing::HasSubstr;
using testing::Not;

class WriteTest : public testing::Test {
 protected:
  WriteTest() { test::make_class_tree(folder_ / "tree"); }

  /// Runs `precast write SOURCE OUT` with `options`. @return the exit code.
  int write(const std::string& source, std::vector<std::string> options = {},
            std::vector<std::string> environment = {}) {
    options.insert(options.begin(), {"write", source, out_});
    const test::PrecastRun run = test::precast_run(std::move(options), std::move(environment));
    output = run.out;
    error = run.err;
    return run.code;
  }
  [[nodiscard]] std::string tree() const { return (folder_ / "tree").string(); }
  [[nodiscard]] bool no_output() const { return std::filesystem::is_empty(outputs_.path()); }

  test::TemporaryFolder folder_;
  test::TemporaryFolder outputs_;
  std::string out_ = (outputs_ / "a.beton").string();
  std::string output;
  std::string error;
};

TEST_F(WriteTest, WritesATreeAndPrintsASummary) {
  ASSERT_EQ(write(tree()), 0) << error;
  EXPECT_THAT(output, Names(out_, 9, 3, "alpha_dropped 1", "cmyk 1", "grey 1", "jpg 9",
                            "mislabelled 1", "png 2", "cat-like/notes.txt"));
  const data::BetonReader reader(out_);
  EXPECT_EQ(reader.size(), 9U);
  EXPECT_EQ(reader.fields()[0].name, "image");
  EXPECT_EQ(reader.fields()[1].name, "label");
  EXPECT_EQ(reader.image(0, 0).width, 20);
  EXPECT_EQ(reader.integer(8, 1), 2);
}

TEST_F(WriteTest, ATarAndItsTreeGiveTheSameFileForAnyWorkers) {
  ASSERT_EQ(write(tree(), {"--workers", "1"}), 0) << error;
  const auto expected = test::read_bytes(out_);
  test::make_tar(folder_ / "a.tar", tree(), "train/");
  ASSERT_EQ(write((folder_ / "a.tar").string(), {"--workers", "3"}), 0) << error;
  EXPECT_TRUE(test::read_bytes(out_) == expected);
}

TEST_F(WriteTest, ThePresetIsWhatFfcvImagenetsScriptSets) {
  ASSERT_EQ(write(tree(), {"--image.mode=proportion", "--image.max_resolution=16",
                           "--image.compress_probability=0.50", "--image.quality=80"}),
            0)
      << error;
  const auto expected = test::read_bytes(out_);
  for (const std::vector<std::string>& preset :
       {std::vector<std::string>{"--preset", "ffcv-imagenet:16,0.50,80"},
        {"--preset=ffcv-imagenet:16,0.50,80"}}) {
    ASSERT_EQ(write(tree(), preset), 0) << error;
    EXPECT_TRUE(test::read_bytes(out_) == expected);
  }
  for (const char* wrong : {"ffcv-imagenet", "ffcv-imagenet:16,0.5", "imagenet:16,0.5,80"}) {
    EXPECT_EQ(write(tree(), {"--preset", wrong}), 2) << wrong;
    EXPECT_THAT(error, Names("--preset", wrong));
  }
  std::vector<std::string> several = {"--preset=ffcv-imagenet:16,0.5,80"};
  for (int more = 0; more < 2; ++more) {
    several.insert(several.end(), {"--preset", "ffcv-imagenet:32,0.5,80"});
    EXPECT_EQ(write(tree(), several), 2);
    EXPECT_THAT(error, Names("--preset"));
  }
  // One of the preset's options is also given directly.
  EXPECT_EQ(write(tree(), {"--preset=ffcv-imagenet:16,0.5,80", "--image.quality=90"}), 2);
}

TEST_F(WriteTest, AsJsonItsSummaryIsOneDocument) {
  ASSERT_EQ(write(tree(), {"--json", "--image.mode=raw", "--image.max_resolution=32"}), 0) << error;
  const auto report = nlohmann::json::parse(output);
  EXPECT_EQ(report["samples"], 9);
  EXPECT_EQ(report["classes"], (std::vector<std::string>{"cat", "cat-like", "dog"}));
  EXPECT_EQ(report["counts"]["raw"], 9);
  EXPECT_EQ(report["counts"]["resized"], 6);
  EXPECT_EQ(report["bytes"], std::filesystem::file_size(out_));
}

TEST_F(WriteTest, ShuffleAndSubsetChooseSamplesBySeed) {
  const auto labels = [this](std::vector<std::string> options) {
    EXPECT_EQ(write(tree(), std::move(options)), 0) << error;
    const data::BetonReader reader(out_);
    std::vector<std::pair<std::int64_t, int>> all;
    for (std::uint64_t i = 0; i < reader.size(); ++i) {
      all.emplace_back(reader.integer(i, 1), reader.image(i, 0).width);
    }
    return all;
  };
  const auto plain = labels({});
  const auto first = labels({"--subset", "4"});
  EXPECT_TRUE(std::equal(first.begin(), first.end(), plain.begin(), plain.begin() + 4));
  const auto drawn = labels({"--subset", "random:4"});
  EXPECT_EQ(drawn.size(), 4U);
  EXPECT_EQ(labels({"--subset", "random:4:0", "--workers", "3"}), drawn);
  const auto shuffled = labels({"--shuffle", "--seed", "3"});
  EXPECT_NE(shuffled, plain);
  EXPECT_THAT(shuffled, testing::UnorderedElementsAreArray(plain));
  EXPECT_EQ(labels({"--shuffle", "--seed", "3"}), shuffled);
  EXPECT_NE(labels({"--shuffle", "--seed", "4"}), shuffled);
}

TEST_F(WriteTest, WrongOptionsEndWithCode2BeforeAnythingIsOpened) {
  using Words = std::vector<std::string>;
  const std::vector<std::pair<Words, Words>> cases = {
      {{"--worker", "2"}, {"--worker", "--workers"}},
      {{"--image.mod", "raw"}, {"--image.mod", "--image.mode"}},
      {{"--workers", "two"}, {"workers", "two"}},
      {{"--workers", "-1"}, {"--workers", "0", "1024", "-1"}},
      {{"--image.mode", "jpeg"}, {"image.mode", "jpeg", "jpg"}},
      {{"--image.mode", "smart"}, {"image.smart_threshold"}},
      {{"--image.quality", "0"}, {"--image.quality", "1", "100", "0"}},
      {{"--image.mode=proportion", "--image.compress_probability", "2"},
       {"image.compress_probability", "0", "1", "2"}},
      {{"--page-size", "3000000"}, {"page_size", "3000000"}},
      {{"--subset", "10"}, {"--subset", "9", "10"}},
      {{"--subset", "random:10"}, {"--subset", "9", "random:10"}},
      {{"--subset", "some"}, {"--subset", "random:N", "some"}},
      {{"--source-kind", "tarr"}, {"kind", "tarr", "tar"}},
      {{"extra"}, {"precast write", "SOURCE", "OUT.beton"}},
  };
  for (const auto& [options, facts] : cases) {
    EXPECT_EQ(write(tree(), options), 2) << options[0];
    EXPECT_THAT(error, test::NamesMatcher(facts)) << options[0];
    EXPECT_TRUE(no_output());
  }
}

TEST_F(WriteTest, AFileThatIsNoImageIsNamedAndNothingIsLeft) {
  test::put_file(folder_ / "tree" / "cat" / "bad.jpg", std::vector<std::byte>(40, std::byte{'x'}));
  EXPECT_EQ(write(tree()), 3);
  EXPECT_THAT(error, Names("cat/bad.jpg", "JPEG", 40, "--on-corrupt skip"));
  EXPECT_TRUE(no_output());
}

TEST_F(WriteTest, OnlyTheErrorOfADamagedSampleSuggestsToSkipIt) {
  test::put_file(folder_ / "tree" / "cat" / "bad.jpg", std::vector<std::byte>(40, std::byte{'x'}));
  EXPECT_EQ(write(tree(), {"--class-names", (folder_ / "absent.txt").string()}), 5);
  EXPECT_THAT(error, Not(HasSubstr("--on-corrupt")));
  std::filesystem::create_directory(folder_ / "tree" / "empty");
  EXPECT_EQ(write(tree()), 3);
  EXPECT_THAT(error, AllOf(Names("empty"), Not(HasSubstr("--on-corrupt"))));
}

TEST_F(WriteTest, DamagedImagesAreLeftOutAndListedWhenAskedTo) {
  for (int i = 0; i < 12; ++i) {
    test::put_file(folder_ / "tree" / "dog" / fmt::format("bad{:02}.jpg", i),
                   std::vector<std::byte>(40, std::byte{'x'}));
  }
  ASSERT_EQ(write(tree(), {"--on-corrupt", "skip"}), 0) << error;
  EXPECT_THAT(output, Names(out_, 9, 3, 12));
  EXPECT_THAT(error, Names(12, "dog/bad00.jpg", 40, "dog/bad09.jpg", 2));
  EXPECT_THAT(error, Not(HasSubstr("bad10")));
  const auto plain = test::read_bytes(out_);
  ASSERT_EQ(write(tree(), {"--on-corrupt=skip", "--json", "--workers=3"}), 0) << error;
  const auto report = nlohmann::json::parse(output);
  EXPECT_EQ(report["samples"], 9);
  ASSERT_EQ(report["skipped"].size(), 12U);
  EXPECT_THAT(std::string(report["skipped"][11]["name"]), HasSubstr("dog/bad11.jpg"));
  EXPECT_TRUE(test::read_bytes(out_) == plain);
  EXPECT_EQ(write(tree(), {"--on-corrupt", "ignore"}), 2);
  EXPECT_THAT(error, Names("on-corrupt", "ignore", "fail", "skip"));
}

TEST_F(WriteTest, AListOfLabelsAndOneOfClassesAreReadFromTheirFiles) {
  std::filesystem::create_directory(folder_ / "flat");
  for (const char* name : {"1", "10"})
    std::filesystem::copy(folder_ / "tree" / "dog" / (std::string(name) + ".jpg"),
                          folder_ / "flat");
  std::ofstream(folder_ / "labels.txt") << "1.jpg 3\n10.jpg 2\n";
  std::ofstream(folder_ / "classes.txt") << "dog\ncat\nape\n";
  const std::string flat = (folder_ / "flat").string();
  ASSERT_EQ(write(flat, {"--labels", (folder_ / "labels.txt").string(), "--class-names",
                         (folder_ / "classes.txt").string()}),
            0)
      << error;
  const data::BetonReader reader(out_);
  EXPECT_EQ(data::class_names_of(reader, 1), (std::vector<std::string>{"dog", "cat", "ape"}));
  EXPECT_EQ(reader.integer(0, 1), 1);
  EXPECT_EQ(reader.integer(1, 1), 2);
  EXPECT_EQ(write(flat, {"--labels", (folder_ / "labels.txt").string()}), 3);
  EXPECT_THAT(error, Names(folder_ / "labels.txt", "line 1", 3, "--class-names"));
}

TEST_F(WriteTest, NamesWhatItSkipsAndWhichClassesHaveNoSamples) {
  test::put_file(folder_ / "tree" / "cat" / ".hidden.jpg", {});
  ASSERT_EQ(write(tree(), {"--subset", "4"}), 0) << error;
  EXPECT_THAT(output, Names("hidden", "cat/.hidden.jpg", "cat-like/notes.txt"));
  EXPECT_THAT(error, Names(2, 3, "1 (cat-like)", "2 (dog)"));
  ASSERT_EQ(write(tree(), {"--subset", "4", "--json"}), 0) << error;
  const auto report = nlohmann::json::parse(output);
  EXPECT_EQ(report["class_field"], "label");
  EXPECT_EQ(report["absent_classes"], (std::vector<int>{1, 2}));
  ASSERT_EQ(report["skipped_files"].size(), 2U);
  EXPECT_EQ(report["skipped_files"][0]["reason"], "hidden");
  EXPECT_EQ(report["skipped_files"][0]["count"], 1);
  EXPECT_EQ(report["skipped_files"][0]["first"][0], "cat/.hidden.jpg");
}

TEST_F(WriteTest, CountsOfWrittenSamplesAreApartFromWhatWasSkipped) {
  const std::vector<std::byte> junk(40, std::byte{'x'});
  for (const char* name : {"broken.jpg", "x.bmp", "y.gif"})
    test::put_file(folder_ / "tree" / "dog" / name, junk);
  EXPECT_EQ(write(tree()), 3);
  ASSERT_EQ(write(tree(), {"--on-corrupt", "skip"}), 0) << error;
  EXPECT_THAT(error, Names(3, "dog/broken.jpg", "dog/x.bmp", "dog/y.gif"));
  std::map<std::string, std::string> lines;
  std::istringstream text(output);
  for (std::string line; std::getline(text, line);)
    lines[line.substr(0, line.find(':'))] = line.substr(line.find(':') + 1);
  EXPECT_THAT(lines.at("counts"), AllOf(Names("jpg 9"), Not(HasSubstr("skipped"))));
  EXPECT_EQ(lines.at("skipped samples"), " 3");
  EXPECT_THAT(lines.at("skipped files"), Names(1, "cat-like/notes.txt"));
}

TEST_F(WriteTest, ASplitWithFewerClassesIsWrittenWithThoseOfTheTrainingSet) {
  ASSERT_EQ(write(tree()), 0) << error;
  const std::string train = (folder_ / "train.beton").string();
  std::filesystem::rename(out_, train);
  std::filesystem::remove_all(folder_ / "tree" / "cat");
  ASSERT_EQ(write(tree()), 0) << error;
  EXPECT_EQ(data::BetonReader(out_).integer(0, 1), 0);
  ASSERT_EQ(write(tree(), {"--class-names", train}), 0) << error;
  EXPECT_THAT(error, Names("0 (cat)"));
  const data::BetonReader reader(out_);
  EXPECT_EQ(reader.integer(0, 1), 1);
  EXPECT_EQ(data::class_names_of(reader, 1), data::class_names_of(data::BetonReader(train), 1));
  EXPECT_EQ(data::file_info_of(reader).written.count("classes"), 0U);
}

TEST_F(WriteTest, SaysWhichColumnBecameClassesOrCould) {
  std::ofstream(folder_ / "a.csv") << "id,species\n1,dog\n2,cat\n3,dog\n";
  const std::string list = (folder_ / "a.csv").string();
  ASSERT_EQ(write(list, {"--class-column", "species"}), 0) << error;
  EXPECT_THAT(output, Names("'species'", 2));
  EXPECT_THAT(error, Not(HasSubstr("data.targets")));
  const data::BetonReader reader(out_);
  EXPECT_EQ(data::class_names_of(reader, 0), (std::vector<std::string>{"cat", "dog"}));
  EXPECT_EQ(reader.integer(0, 0), 1);
  std::ofstream(folder_ / "b.csv") << "file,species\ntree/dog/1.jpg,dog\n";
  ASSERT_EQ(write((folder_ / "b.csv").string()), 0) << error;
  EXPECT_THAT(error, Names("--class-column species"));
}

TEST_F(WriteTest, AClassNameThatIsNotUtf8IsRefused) {
  // Bird and dog in GBK. As replacement characters, both names would be equal.
  std::filesystem::rename(folder_ / "tree" / "cat", folder_ / "tree" / "\xc4\xf1");
  std::filesystem::rename(folder_ / "tree" / "dog", folder_ / "tree" / "\xb9\xb7");
  EXPECT_EQ(write(tree()), 3);
  EXPECT_THAT(error, Names("label 1", "'label'", R"(mv $'\xb9\xb7')"));
  EXPECT_TRUE(no_output());
}

TEST_F(WriteTest, ADatasetWrittenAgainKeepsAllItsClassNames) {
  const auto classes = [this] { return data::file_info_of(data::BetonReader(out_)).classes; };
  std::ofstream(folder_ / "a.csv") << "id,class\n1,dog\n2,cat\n3,dog\n";
  ASSERT_EQ(write((folder_ / "a.csv").string()), 0) << error;
  const std::string once = (folder_ / "once.beton").string();
  std::filesystem::rename(out_, once);
  ASSERT_EQ(write(once, {"--json"}), 0) << error;
  EXPECT_THAT(classes(),
              testing::ElementsAre(testing::Pair("class", testing::ElementsAre("cat", "dog"))));
  EXPECT_EQ(nlohmann::json::parse(output)["class_field"], "class");
  EXPECT_EQ(data::BetonReader(out_).integer(1, 0), 0);
  EXPECT_EQ(data::BetonReader(out_).integer(1, 1), 2);

  const data::FileInfo two{.classes = {{"animal", {"ant", "bee"}}, {"color", {"red", "blue"}}},
                           .written = {}};
  data::BetonLayout layout;
  layout.info = data::file_info_text(two);
  data::BetonWriter writer(
      once, {{"color", data::FieldType::integer}, {"animal", data::FieldType::integer}}, 1, layout);
  std::vector<data::EncodedValue> values(2);
  for (data::EncodedValue& value : values) value.metadata.resize(8);
  writer.add(values);
  writer.finish();
  ASSERT_EQ(write(once, {"--json"}), 0) << error;
  EXPECT_EQ(classes(), two.classes);
  EXPECT_EQ(nlohmann::json::parse(output)["class_field"], "color");
}

TEST_F(WriteTest, ASmallDatasetIsASmallFile) {
  ASSERT_EQ(write(tree()), 0) << error;
  EXPECT_LT(std::filesystem::file_size(out_), 100'000U);
  ASSERT_EQ(write(tree(), {"--no_checksums"}), 0) << error;
  EXPECT_GT(std::filesystem::file_size(out_), 2 * data::kDefaultPageBytes);
}

TEST_F(WriteTest, ColumnsOfNumbersAreWrittenAsTheirTextWhenAskedTo) {
  std::ofstream(folder_ / "a.csv") << "zip,count\n1234,1\n1.50,2\n";
  ASSERT_EQ(write((folder_ / "a.csv").string(), {"--field-kind", "zip=bytes"}), 0) << error;
  const data::BetonReader reader(out_);
  const auto text = reader.blob(1, 0);
  EXPECT_EQ(std::string(reinterpret_cast<const char*>(text.data()), text.size()), "1.50");
  EXPECT_EQ(reader.integer(1, 1), 2);
  EXPECT_THAT(output, testing::Not(testing::HasSubstr("class"))) << "numbers have no class names";
}

TEST_F(WriteTest, ListsOfColumnsAreReadFromTheCommandLine) {
  const auto text = [](const data::BetonReader& reader, const char* field) {
    const auto value = reader.blob(0, reader.field(field));
    return std::string(reinterpret_cast<const char*>(value.data()), value.size());
  };
  std::ofstream(folder_ / "a.csv") << "zip,code,a_name_of_17_char\n1.50,2.50,3\n";
  const std::string list = (folder_ / "a.csv").string();
  ASSERT_EQ(write(list, {"--texts", "[zip, a_name_of_17_char]", "--field-kind", "code=bytes"}), 0)
      << error;
  const data::BetonReader reader(out_);
  EXPECT_EQ(text(reader, "zip"), "1.50");
  EXPECT_EQ(text(reader, "code"), "2.50");
  EXPECT_EQ(text(reader, "a_name_of_17_cha"), "3");
  EXPECT_EQ(data::file_info_of(reader).written.count("texts"), 0U);
  for (const char* texts : {"--texts=[cod]", "--texts=cod", "--field-kind=cod=bytes"}) {
    EXPECT_EQ(write(list, {texts}), 2) << texts;
    EXPECT_THAT(error, Names(list, "'cod'", "'code'")) << texts;
  }
  EXPECT_EQ(write(list, {"--texts=[cod"}), 2);
}

TEST_F(WriteTest, ListsOfNumbersAreArraysOrDocuments) {
  std::ofstream(folder_ / "a.jsonl")
      << R"({"image": "tree/dog/1.jpg", "caption": "a dog", "labels": [0, 1]})";
  const std::string list = (folder_ / "a.jsonl").string();
  ASSERT_EQ(write(list), 0) << error;
  EXPECT_THAT(error, Not(HasSubstr("--class-column"))) << "the lists can be labels";
  const data::BetonReader arrays(out_);
  EXPECT_EQ(arrays.fields()[2].type, data::FieldType::ndarray);
  EXPECT_EQ(arrays.fields()[2].dtype, "<i8");
  ASSERT_EQ(write(list, {"--floats", "[labels]"}), 0) << error;
  EXPECT_EQ(data::BetonReader(out_).fields()[2].dtype, "<f8");
  ASSERT_EQ(write(list, {"--field-kind=labels=json", "--field-kind=caption=json"}), 0) << error;
  const data::BetonReader documents(out_);
  for (const auto& [field, document] : {std::pair(1, "\"a dog\""), std::pair(2, "[0,1]")}) {
    const auto at = static_cast<std::size_t>(field);
    EXPECT_EQ(documents.fields()[at].type, data::FieldType::json);
    EXPECT_EQ(data::json_text(documents.blob(0, at)), document);
  }
  EXPECT_EQ(write(list, {"--field-kind=labels=float"}), 2);
  EXPECT_THAT(error, Names("--field-kind", "labels=float"));
}

TEST_F(WriteTest, ShardsInBracesAreOneSourceAndNeverOverwritten) {
  for (const char* shard : {"a", "b"}) {
    const std::filesystem::path shard_folder = folder_ / shard;
    std::filesystem::create_directory(shard_folder);
    std::filesystem::copy(folder_ / "tree" / "dog" / "1.jpg", shard_folder / "s.jpg");
    std::ofstream(shard_folder / "s.cls") << "7";
    test::make_tar(folder_ / (std::string(shard) + ".tar"), shard_folder, "");
  }
  const std::string shards = (folder_ / "{a,b}.tar").string();
  ASSERT_EQ(write(shards), 0) << error;
  EXPECT_EQ(data::BetonReader(out_).size(), 2U);
  EXPECT_EQ(data::BetonReader(out_).integer(1, 1), 7);
  out_ = (folder_ / "b.tar").string();
  EXPECT_EQ(write(shards), 2);
  EXPECT_EQ(test::occurrences(error, out_), 2) << "named as the output and as the input: " << error;
}

TEST_F(WriteTest, AnOutputThatCannotBeWrittenIsNamed) {
  out_ = (outputs_ / "missing" / "a.beton").string();
  EXPECT_EQ(write(tree()), 5);
  EXPECT_THAT(error, HasSubstr(out_));
  EXPECT_TRUE(no_output());
  out_ = (outputs_ / "a.beton").string();
  EXPECT_EQ(write("/nonexistent"), 5);
  EXPECT_THAT(error, HasSubstr("/nonexistent"));
}

TEST_F(WriteTest, APathThatTheSystemRefusesIsNamed) {
  std::filesystem::create_symlink("loop", outputs_ / "loop");
  const std::string loop = (outputs_ / "loop").string();
  EXPECT_EQ(write(loop), 5);
  EXPECT_THAT(error, AllOf(HasSubstr(loop), HasSubstr(std::strerror(ELOOP))));
  const std::string whole = std::exchange(out_, loop);
  EXPECT_EQ(write(tree()), 5);
  EXPECT_THAT(error, AllOf(HasSubstr(loop), HasSubstr(std::strerror(ELOOP))));
  out_ = whole + std::string(300, 'x');
  EXPECT_EQ(write(tree()), 5);
  EXPECT_THAT(error, AllOf(HasSubstr(out_), HasSubstr(std::strerror(ENAMETOOLONG))));
}

TEST_F(WriteTest, AFileSizeLimitIsAnErrorAndNothingIsLeft) {
  const std::string told = (folder_ / "told").string();
  EXPECT_EQ(
      test::precast_shell("ulimit -f 4; exec", fmt::format("write {} {} 2>{}", tree(), out_, told)),
      5);
  const auto bytes = test::read_bytes(told);
  EXPECT_THAT(std::string(reinterpret_cast<const char*>(bytes.data()), bytes.size()),
              AllOf(HasSubstr(out_), HasSubstr(std::strerror(EFBIG))));
  EXPECT_TRUE(no_output());
}

TEST_F(WriteTest, ASourceIsNeverOverwrittenByItsOwnOutput) {
  test::make_tar(outputs_ / "a.beton", tree(), "");
  EXPECT_EQ(write(out_, {"--source-kind", "tar"}), 2);
  EXPECT_EQ(test::occurrences(error, out_), 2) << "named as the output and as the input: " << error;
}

TEST_F(WriteTest, NoFileButADatasetIsReplaced) {
  const std::filesystem::path labels = folder_ / "labels.txt";
  std::ofstream(labels) << "1.jpg cat\n10.jpg dog\n";
  out_ = labels;
  EXPECT_EQ(write((folder_ / "tree" / "dog").string(), {"--labels", labels}), 2);
  EXPECT_EQ(test::occurrences(error, out_), 2) << "named as the output and as the input: " << error;
  out_ = folder_ / "tree" / "dog" / "1.jpg";
  EXPECT_EQ(write(tree()), 2);
  EXPECT_THAT(error, Names(out_, ".beton"));
}

TEST_F(WriteTest, NoPathsAreNotedInTheFile) {
  ASSERT_EQ(write(tree(), {"--on-corrupt", "skip"}), 0) << error;
  for (const auto& [name, text] : data::file_info_of(data::BetonReader(out_)).written)
    EXPECT_THAT(text, Not(HasSubstr("/"))) << name;
  EXPECT_EQ(data::file_info_of(data::BetonReader(out_)).written.at("on_corrupt"), "skip");
  const auto subset_of = [this](const std::string& name, const std::string& ids) {
    const std::string list = (folder_ / name).string();
    std::ofstream(list) << ids;
    EXPECT_EQ(write(tree(), {"--subset", "@" + list}), 0) << error;
    return test::read_bytes(out_);
  };
  const auto first = subset_of("one", "1\n4\n");
  EXPECT_TRUE(subset_of("two", "1\n4\n") == first);
  EXPECT_THAT(data::file_info_of(data::BetonReader(out_)).written.at("subset"),
              Not(HasSubstr("/")));
  EXPECT_FALSE(subset_of("three", "1\n5\n") == first);
  ASSERT_EQ(write(tree(), {"--subset", "2:4"}), 0) << error;
  EXPECT_EQ(data::file_info_of(data::BetonReader(out_)).written.at("subset"), "2:4");
}

TEST_F(WriteTest, AProcessKilledAnywhereLeavesNoFileUnderTheFinalName) {
  for (const char* failpoint : {"beton.before_table", "beton.before_header",
                                "atomic_file.before_sync", "atomic_file.before_rename"}) {
    EXPECT_EQ(write(tree(), {}, {fmt::format("PRECAST_FAILPOINTS={}=kill", failpoint)}),
              128 + SIGKILL);
    EXPECT_FALSE(std::filesystem::exists(out_)) << failpoint;
    EXPECT_EQ(write(tree(), {}, {fmt::format("PRECAST_FAILPOINTS={}=error", failpoint)}), 5)
        << error;
    EXPECT_FALSE(std::filesystem::exists(out_)) << failpoint;
  }
  // The files that killed runs left behind are complete or have no valid header.
  for (const auto& left : std::filesystem::directory_iterator(outputs_.path())) {
    if (left.file_size() < data::kHeaderBytes) continue;
    try {
      const data::BetonReader complete(left.path());
    } catch (const DataError& refused) {
      EXPECT_THAT(refused.what(), Names(left.path(), "header", 0));
    }
  }
  EXPECT_EQ(write(tree()), 0) << error;
}

TEST_F(WriteTest, TheIndexIsTheOneThatPrecastIndexMakes) {
  const std::string sidecar = out_ + ".jidx";
  const std::vector<std::string> passthrough = {"--image.passthrough", "true"};
  ASSERT_EQ(write(tree(), passthrough), 0) << error;
  const auto plain = test::read_bytes(out_);
  for (const std::string every : {"1", "8", "16"}) {
    ASSERT_EQ(write(tree(), {"--image.passthrough=true", "--index", "--every", every, "--json"}), 0)
        << error;
    const auto report = nlohmann::json::parse(output);
    EXPECT_EQ(report["index_bytes"], std::filesystem::file_size(sidecar));
    EXPECT_EQ(report["counts"]["indexed"], 8) << "all except the progressive JPEG";
    const auto written = test::read_bytes(sidecar);
    std::filesystem::remove(sidecar);
    const auto run = test::precast_run({"index", out_, "--every", every, "--json"});
    ASSERT_EQ(run.code, 0) << run.err;
    EXPECT_TRUE(test::read_bytes(sidecar) == written) << every;
    EXPECT_EQ(nlohmann::json::parse(run.out)["interval"], std::stoi(every));
    const data::BetonReader reader(out_);
    EXPECT_EQ(data::JpegIndex::open(sidecar, reader.fingerprint(), reader.size())->interval(),
              std::stoul(every));
    EXPECT_TRUE(test::read_bytes(out_) == plain) << "the dataset does not depend on the index";
  }
  ASSERT_EQ(write(tree(), {"--index"}), 0) << error;
  EXPECT_THAT(output, Names(sidecar));
  ASSERT_EQ(write(tree()), 0) << error;
  EXPECT_FALSE(std::filesystem::exists(sidecar)) << "the index of the older file must be removed";
}

TEST_F(WriteTest, AnIndexHasAnImageFieldAndItsOptionAnIndex) {
  EXPECT_EQ(write(tree(), {"--every", "4"}), 2);
  EXPECT_THAT(error, Names("--every", "--index"));
  EXPECT_EQ(write(tree(), {"--index", "--every", "0"}), 2);
  EXPECT_THAT(error, Names("--every", "1", "65536", "0"));
  std::ofstream(folder_ / "a.csv") << "id,count\n1,4\n";
  EXPECT_EQ(write((folder_ / "a.csv").string(), {"--index"}), 2);
  EXPECT_THAT(error, Names("index", "image"));
  EXPECT_TRUE(no_output());
}

TEST_F(WriteTest, AProcessKilledAnywhereLeavesNoIndexOfAnotherDataset) {
  const std::string sidecar = out_ + ".jidx";
  const std::string subset = "--subset=4";
  ASSERT_EQ(write(tree(), {subset, "--index"}), 0) << error;
  const auto old_file = test::read_bytes(out_);
  const auto old_index = test::read_bytes(sidecar);
  ASSERT_EQ(write(tree(), {"--index"}), 0) << error;
  const auto new_file = test::read_bytes(out_);
  const auto new_index = test::read_bytes(sidecar);
  struct Case {
    const char* failpoint;
    bool has_new_file;
    bool has_index;
  };
  // The second file that is synced and renamed is the index.
  for (const auto& [failpoint, has_new_file, has_index] :
       {Case{"beton.before_table", false, true}, Case{"beton.before_header", false, true},
        Case{"atomic_file.before_sync", false, false},
        Case{"atomic_file.before_rename", false, false},
        Case{"atomic_file.before_sync=kill@2", true, false},
        Case{"atomic_file.before_rename=kill@2", true, false}}) {
    test::write_bytes(out_, old_file);
    test::write_bytes(sidecar, old_index);
    std::string point = failpoint;
    if (point.find('=') == std::string::npos) point += "=kill";
    EXPECT_EQ(write(tree(), {"--index"}, {"PRECAST_FAILPOINTS=" + point}), 128 + SIGKILL)
        << failpoint;
    EXPECT_TRUE(test::read_bytes(out_) == (has_new_file ? new_file : old_file)) << failpoint;
    ASSERT_EQ(std::filesystem::exists(sidecar), has_index) << failpoint;
    EXPECT_TRUE(!has_index || test::read_bytes(sidecar) == old_index) << failpoint;
  }
  ASSERT_EQ(write(tree(), {"--index"}), 0) << error;
  EXPECT_TRUE(test::read_bytes(sidecar) == new_index);
}

TEST_F(WriteTest, SignalsStopItWithTheirCodeAndNothingIsLeft) {
  // 30,000 black images in a sparse file: seconds of work.
  const auto images = folder_ / "x-images-idx3-ubyte";
  const auto labels = folder_ / "x-labels-idx1-ubyte";
  const std::string head{"\0\0\x08\x03\0\0\x75\x30\0\0\0\x40\0\0\0\x40", 16};
  const std::string label_head{"\0\0\x08\x01\0\0\x75\x30", 8};
  test::write_bytes(images, std::as_bytes(std::span(head)));
  test::write_bytes(labels, std::as_bytes(std::span(label_head)));
  std::filesystem::resize_file(images, 16 + 30000 * 64 * 64);
  std::filesystem::resize_file(labels, 8 + 30000);
  for (const int signal : {SIGINT, SIGTERM, SIGHUP}) {
    test::PrecastProgram program({"write", images.string(), out_, "--workers", "1", "--index"});
    // The file appears after the signal handlers are in place.
    EXPECT_TRUE(test::eventually([this] { return !no_output(); }));
    ::kill(program.id(), signal);
    EXPECT_EQ(program.wait(), 128 + signal) << program.err;
    EXPECT_THAT(program.err, HasSubstr(out_));
    EXPECT_TRUE(no_output());
  }
}

}  // namespace
}  // namespace precast::tools
