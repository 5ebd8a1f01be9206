#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <filesystem>
#include <fstream>
#include <map>
#include <nlohmann/json.hpp>
#include <thread>

#include "data/beton/reader.h"
#include "framework/core/error.h"
#include "tests/data/beton/golden_beton.h"
#include "tests/data/sources/sample_images.h"
#include "tests/support/program.h"
#include "tests/support/temporary_folder.h"

namespace precast::tools {
namespace {

using testing::AllOf;
using testing::HasSubstr;

/// `precast` itself.
class Program : public test::Program {
 public:
  explicit Program(std::vector<std::string> arguments, std::vector<std::string> environment = {})
      : test::Program(with_path(std::move(arguments)), std::move(environment)) {}

 private:
  static std::vector<std::string> with_path(std::vector<std::string> arguments) {
    arguments.insert(arguments.begin(), std::string(PRECAST_BIN_DIR) + "/precast");
    return arguments;
  }
};

/// Runs `sh -c "PREFIX precast COMMAND"`. @return its exit code, or -1 if a signal ended it.
int shell(const std::string& prefix, const std::string& command) {
  const int status =
      std::system(fmt::format("{} {}/precast {}", prefix, PRECAST_BIN_DIR, command).c_str());
  return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

class WriteTest : public testing::Test {
 protected:
  WriteTest() { test::make_class_tree(folder_ / "tree"); }

  /// Runs `precast write` with `options` between source and end. @return the exit code.
  int write(const std::string& source, std::vector<std::string> options = {},
            std::vector<std::string> environment = {}) {
    options.insert(options.begin(), {"write", source, out_});
    Program program(options, std::move(environment));
    const int code = program.wait();
    output = program.out;
    error = program.err;
    return code;
  }
  [[nodiscard]] std::string tree() const { return (folder_ / "tree").string(); }
  [[nodiscard]] bool no_output() const { return std::filesystem::is_empty(outputs_.path()); }

  test::TemporaryFolder folder_;
  test::TemporaryFolder outputs_;
  std::string out_ = (outputs_ / "a.beton").string();
  std::string output;
  std::string error;
};

TEST_F(WriteTest, WritesATreeAndTellsWhatItMet) {
  ASSERT_EQ(write(tree()), 0) << error;
  EXPECT_THAT(output, AllOf(HasSubstr("9 samples, 3 classes"),
                            HasSubstr("alpha_dropped 1, cmyk 1, grey 1, jpg 9, mislabelled 1, "
                                      "png 2, skipped_files 1")));
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
  const auto shuffled = labels({"--shuffle", "--seed", "3"});
  EXPECT_NE(shuffled, plain);
  EXPECT_THAT(shuffled, testing::UnorderedElementsAreArray(plain));
  EXPECT_EQ(labels({"--shuffle", "--seed", "3"}), shuffled);
  EXPECT_NE(labels({"--shuffle", "--seed", "4"}), shuffled);
}

TEST_F(WriteTest, WrongOptionsEndWithCode2BeforeAnythingIsOpened) {
  const std::vector<std::pair<std::vector<std::string>, std::string>> cases = {
      {{"--worker", "2"}, "unknown option '--worker'. Did you mean '--workers'?"},
      {{"--image.mod", "raw"}, "Did you mean '--image.mode'?"},
      {{"--workers", "two"}, "'two'"},
      {{"--workers", "-1"}, "--workers: expected 0 to 1024, got -1"},
      {{"--image.mode", "jpeg"}, "unknown mode 'jpeg'"},
      {{"--image.mode", "smart"}, "image.smart_threshold: expected bytes"},
      {{"--image.quality", "0"}, "--image.quality: expected 1 to 100, got 0"},
      {{"--image.compress_probability", "2"}, "image.compress_probability: expected 0 to 1"},
      {{"--page_size", "3000000"}, "page_size: expected a power of two"},
      {{"--subset", "10"}, "--subset: expected 0 to 9, got 10"},
      {{"--kind", "tarr"}, "unknown kind 'tarr'"},
      {{"extra"}, "too many arguments"},
  };
  for (const auto& [options, message] : cases) {
    EXPECT_EQ(write(tree(), options), 2) << message;
    EXPECT_THAT(error, HasSubstr(message));
    EXPECT_TRUE(no_output());
  }
}

TEST_F(WriteTest, AFileThatIsNoImageIsNamedAndNothingIsLeft) {
  test::put_file(folder_ / "tree" / "cat" / "bad.jpg", std::vector<std::byte>(40, std::byte{'x'}));
  EXPECT_EQ(write(tree()), 3);
  EXPECT_THAT(error,
              AllOf(HasSubstr("cat/bad.jpg"), HasSubstr("expected a JPEG, PNG or WebP file")));
  EXPECT_TRUE(no_output());
}

TEST_F(WriteTest, DamagedImagesAreLeftOutAndListedWhenAskedTo) {
  for (int i = 0; i < 12; ++i) {
    test::put_file(folder_ / "tree" / "dog" / fmt::format("bad{:02}.jpg", i),
                   std::vector<std::byte>(40, std::byte{'x'}));
  }
  ASSERT_EQ(write(tree(), {"--on-corrupt", "skip"}), 0) << error;
  EXPECT_THAT(output, AllOf(HasSubstr("9 samples, 3 classes"), HasSubstr("skipped_samples 12")));
  EXPECT_THAT(error, AllOf(HasSubstr("warning: damaged samples left out: 12\n"),
                           HasSubstr("dog/bad00.jpg): image: expected a JPEG, PNG or WebP file"),
                           HasSubstr("dog/bad09.jpg"), HasSubstr("... and 2 more")));
  EXPECT_THAT(error, testing::Not(HasSubstr("bad10")));
  const auto plain = test::read_bytes(out_);
  ASSERT_EQ(write(tree(), {"--on_corrupt=skip", "--json", "--workers=3"}), 0) << error;
  const auto report = nlohmann::json::parse(output);
  EXPECT_EQ(report["samples"], 9);
  ASSERT_EQ(report["skipped"].size(), 12U);
  EXPECT_THAT(std::string(report["skipped"][11]["name"]), HasSubstr("dog/bad11.jpg"));
  EXPECT_TRUE(test::read_bytes(out_) == plain);
  EXPECT_EQ(write(tree(), {"--on-corrupt", "ignore"}), 2);
  EXPECT_THAT(error, HasSubstr("on-corrupt: unknown policy 'ignore'. Known: fail, skip"));
}

TEST_F(WriteTest, AListOfLabelsAndOneOfClassesAreReadFromTheirFiles) {
  std::filesystem::create_directory(folder_ / "flat");
  for (const char* name : {"1", "10"})
    std::filesystem::copy(folder_ / "tree" / "dog" / (std::string(name) + ".jpg"),
                          folder_ / "flat");
  std::ofstream(folder_ / "labels.txt") << "1.jpg 3\n10.jpg 1\n";
  std::ofstream(folder_ / "classes.txt") << "dog\ncat\nape\n";
  const std::string flat = (folder_ / "flat").string();
  ASSERT_EQ(write(flat, {"--labels", (folder_ / "labels.txt").string(), "--classes",
                         (folder_ / "classes.txt").string()}),
            0)
      << error;
  const data::BetonReader reader(out_);
  EXPECT_EQ(reader.class_names(1), (std::vector<std::string>{"ape", "cat", "dog"}));
  EXPECT_EQ(reader.integer(0, 1), 0);
  EXPECT_EQ(reader.integer(1, 1), 2);
  EXPECT_EQ(write(flat, {"--labels", (folder_ / "labels.txt").string()}), 3);
  EXPECT_THAT(error, HasSubstr("in that order with --classes"));
}

TEST_F(WriteTest, ColumnsOfNumbersAreWrittenAsTheirTextWhenAskedTo) {
  std::ofstream(folder_ / "a.csv") << "zip,count\n1234,1\n1.50,2\n";
  ASSERT_EQ(write((folder_ / "a.csv").string(), {"--field", "zip=bytes"}), 0) << error;
  const data::BetonReader reader(out_);
  const auto text = reader.blob(1, 0);
  EXPECT_EQ(std::string(reinterpret_cast<const char*>(text.data()), text.size()), "1.50");
  EXPECT_EQ(reader.integer(1, 1), 2);
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
  EXPECT_THAT(error, HasSubstr("expected another file to write than to read"));
}

TEST_F(WriteTest, AnOutputThatCannotBeWrittenIsNamed) {
  out_ = (outputs_ / "missing" / "a.beton").string();
  EXPECT_EQ(write(tree()), 5);
  EXPECT_THAT(error, HasSubstr(out_));
  EXPECT_TRUE(no_output());
  EXPECT_EQ(write("/nonexistent"), 5);
  EXPECT_THAT(error, HasSubstr("/nonexistent"));
}

TEST_F(WriteTest, APathThatTheSystemRefusesIsNamed) {
  std::filesystem::create_symlink("loop", outputs_ / "loop");
  const std::string loop = (outputs_ / "loop").string();
  EXPECT_EQ(write(loop), 5);
  EXPECT_THAT(error, AllOf(HasSubstr(loop), HasSubstr("Too many levels")));
  const std::string whole = std::exchange(out_, loop);
  EXPECT_EQ(write(tree()), 5);
  EXPECT_THAT(error, AllOf(HasSubstr(loop), HasSubstr("Too many levels")));
  out_ = whole + std::string(300, 'x');
  EXPECT_EQ(write(tree()), 5);
  EXPECT_THAT(error, AllOf(HasSubstr(out_), HasSubstr("File name too long")));
}

TEST_F(WriteTest, AFileSizeLimitIsAnErrorAndNothingIsLeft) {
  const std::string told = (folder_ / "told").string();
  EXPECT_EQ(shell("ulimit -f 64; exec", fmt::format("write {} {} 2>{}", tree(), out_, told)), 5);
  const auto bytes = test::read_bytes(told);
  EXPECT_THAT(std::string(reinterpret_cast<const char*>(bytes.data()), bytes.size()),
              AllOf(HasSubstr(out_), HasSubstr("File too large")));
  EXPECT_TRUE(no_output());
}

TEST_F(WriteTest, ASourceIsNeverOverwrittenByItsOwnOutput) {
  test::make_tar(outputs_ / "a.beton", tree(), "");
  EXPECT_EQ(write(out_, {"--kind", "tar"}), 2);
  EXPECT_THAT(error, HasSubstr("expected another file to write than to read"));
}

TEST_F(WriteTest, NoFileButADatasetIsReplaced) {
  const std::filesystem::path labels = folder_ / "labels.txt";
  std::ofstream(labels) << "1.jpg cat\n10.jpg dog\n";
  out_ = labels;
  EXPECT_EQ(write((folder_ / "tree" / "dog").string(), {"--labels", labels}), 2);
  EXPECT_THAT(error, HasSubstr("expected another file to write than to read"));
  out_ = folder_ / "tree" / "dog" / "1.jpg";
  EXPECT_EQ(write(tree()), 2);
  EXPECT_THAT(error, HasSubstr("or a .beton file to replace, got another file. Remove it first"));
}

TEST_F(WriteTest, NoPathsAreNotedInTheFile) {
  ASSERT_EQ(write(tree(), {"--on-corrupt", "skip"}), 0) << error;
  for (const auto& [name, text] : data::BetonReader(out_).info().written)
    EXPECT_THAT(text, testing::Not(HasSubstr("/"))) << name;
  EXPECT_EQ(data::BetonReader(out_).info().written.at("on_corrupt"), "skip");
}

TEST_F(WriteTest, AProcessKilledAnywhereLeavesNoFileUnderTheFinalName) {
  for (const char* place : {"beton.before_table", "beton.before_header", "atomic_file.before_sync",
                            "atomic_file.before_rename"}) {
    EXPECT_EQ(write(tree(), {}, {fmt::format("PRECAST_FAILPOINTS={}=kill", place)}), 128 + SIGKILL);
    EXPECT_FALSE(std::filesystem::exists(out_)) << place;
    EXPECT_EQ(write(tree(), {}, {fmt::format("PRECAST_FAILPOINTS={}=error", place)}), 5) << error;
    EXPECT_FALSE(std::filesystem::exists(out_)) << place;
  }
  // What the killed ones left behind does not disturb, and has no header that a reader accepts.
  for (const auto& left : std::filesystem::directory_iterator(outputs_.path())) {
    if (left.file_size() < data::kHeaderBytes) continue;
    std::string found;
    try {
      const data::BetonReader reader(left.path());
      found = "complete";
    } catch (const Error& refused) {
      found = refused.what();
    }
    EXPECT_THAT(found, testing::AnyOf(HasSubstr("was stopped before"), HasSubstr("complete")));
  }
  EXPECT_EQ(write(tree()), 0) << error;
}

TEST_F(WriteTest, SignalsStopItWithTheirCodeAndNothingIsLeft) {
  // 30,000 black pictures in a file with a hole: seconds of work.
  const auto images = folder_ / "x-images-idx3-ubyte";
  const auto labels = folder_ / "x-labels-idx1-ubyte";
  const std::string head{"\0\0\x08\x03\0\0\x75\x30\0\0\0\x40\0\0\0\x40", 16};
  const std::string label_head{"\0\0\x08\x01\0\0\x75\x30", 8};
  test::write_bytes(images, std::as_bytes(std::span(head)));
  test::write_bytes(labels, std::as_bytes(std::span(label_head)));
  std::filesystem::resize_file(images, 16 + 30000 * 64 * 64);
  std::filesystem::resize_file(labels, 8 + 30000);
  for (const int signal : {SIGINT, SIGTERM}) {
    Program program({"write", images.string(), out_, "--workers", "1"});
    // The file appears after the signal handlers are in place.
    const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(30);
    while (no_output() && std::chrono::steady_clock::now() < deadline)
      std::this_thread::sleep_for(std::chrono::milliseconds(2));
    ::kill(program.id(), signal);
    EXPECT_EQ(program.wait(), 128 + signal) << program.err;
    EXPECT_THAT(program.err, HasSubstr("stopped before the file was complete"));
    EXPECT_TRUE(no_output());
  }
}

class InspectTest : public testing::Test {
 protected:
  /// Unpacks a golden file. @return its path.
  std::string golden(const std::string& name) {
    const auto path = folder_ / (name + ".beton");
    test::write_bytes(path, test::golden_beton(name));
    return path.string();
  }
  int inspect(std::vector<std::string> arguments) {
    arguments.insert(arguments.begin(), "inspect");
    Program program(std::move(arguments));
    const int code = program.wait();
    output = program.out;
    error = program.err;
    return code;
  }
  test::TemporaryFolder folder_;
  std::string output;
  std::string error;
};

TEST_F(InspectTest, JsonHoldsWhatFfcvPutIntoTheFile) {
  ASSERT_EQ(inspect({golden("img_smart_w3"), "--json", "--labels"}), 0) << error;
  const auto report = nlohmann::json::parse(output);
  const auto facts = test::golden_beton_facts("img_smart_w3");
  EXPECT_EQ(report["samples"], facts["rows"].size());
  EXPECT_EQ(report["page_size"], facts["page_size"]);
  EXPECT_EQ(report["table_offset"], facts["table_offset"]);
  EXPECT_EQ(report["pages"], 3);
  const auto& label = report["fields"][0];
  const auto& image = report["fields"][1];
  std::vector<std::int64_t> labels;
  int jpg = 0;
  double width = 0;
  for (const auto& row : facts["rows"]) {
    labels.push_back(row[0]);
    jpg += row[1][0] == 0 ? 1 : 0;
    width += row[1][1].get<double>();
  }
  EXPECT_EQ(label["labels"], labels);
  EXPECT_EQ(label["min"], *std::ranges::min_element(labels));
  EXPECT_EQ(image["jpg"], jpg);
  EXPECT_EQ(image["raw"], facts["rows"].size() - static_cast<std::size_t>(jpg));
  EXPECT_DOUBLE_EQ(image["width"]["mean"], width / static_cast<double>(labels.size()));
  ASSERT_EQ(inspect({golden("img_smart_w3"), "--json"}), 0);
  EXPECT_THAT(output, testing::Not(HasSubstr("labels")));
}

TEST_F(InspectTest, ShowsEveryKindOfField) {
  ASSERT_EQ(inspect({golden("allfields_w1")}), 0) << error;
  EXPECT_THAT(output, AllOf(HasSubstr("40 samples"), HasSubstr("tensor_f16_16chr tensor"),
                            HasSubstr("<f4 [3,5]"), HasSubstr("1e+308")));
  ASSERT_EQ(inspect({golden("scalars_only")}), 0) << error;
  EXPECT_THAT(output, AllOf(HasSubstr("50 samples, 0 pages"), HasSubstr("exactly_16_chars int")));
}

TEST_F(InspectTest, TakesAnImageOutAsItIsStored) {
  const std::string raw = golden("img_raw_w1");
  const std::string ppm = (folder_ / "x.ppm").string();
  ASSERT_EQ(inspect({raw, "--sample", "2", "--out", ppm}), 0) << error;
  const data::BetonReader reader(raw);
  const data::ImageRecord image = reader.image(2, 0);
  const auto file = test::read_bytes(ppm);
  const std::string head = fmt::format("P6\n{} {}\n255\n", image.width, image.height);
  ASSERT_EQ(file.size(), head.size() + image.bytes.size());
  EXPECT_TRUE(std::ranges::equal(std::span(file).subspan(head.size()), image.bytes));

  const std::string npy = (folder_ / "x.npy").string();
  ASSERT_EQ(inspect({raw, "--sample", "2", "--out", npy}), 0) << error;
  const auto array = test::read_bytes(npy);
  EXPECT_TRUE(std::ranges::equal(std::span(array).last(image.bytes.size()), image.bytes));

  const std::string jpg = golden("img_jpg_w3");
  const std::string out = (folder_ / "x.jpg").string();
  ASSERT_EQ(inspect({jpg, "--sample", "5", "--out", out}), 0) << error;
  const data::BetonReader jpegs(jpg);
  EXPECT_TRUE(std::ranges::equal(test::read_bytes(out), jpegs.image(5, 0).bytes));
  EXPECT_EQ(nlohmann::json::parse(output)["label"], jpegs.integer(5, 1));
}

TEST_F(InspectTest, RefusesWhatItCannotShow) {
  const std::string file = golden("img_raw_w1");
  EXPECT_EQ(inspect({file, "--sample", "24"}), 2);
  EXPECT_THAT(error, HasSubstr("--sample: expected 0 to 23, got 24"));
  EXPECT_EQ(inspect({file, "--sample", "0", "--out", (folder_ / "x.gif").string()}), 2);
  const std::string image = (folder_ / "x.jpg").string();
  std::filesystem::create_hard_link(file, image);
  EXPECT_EQ(inspect({file, "--sample", "0", "--out", image}), 2);
  EXPECT_THAT(error, HasSubstr("expected another file to write than to read"));
  EXPECT_EQ(inspect({file, "--out", "x.jpg"}), 2);
  EXPECT_EQ(inspect({file, "--sample", "0", "--field", "label", "--out", "x.jpg"}), 2);
  EXPECT_EQ(inspect({}), 2);
  EXPECT_EQ(inspect({(folder_ / "missing.beton").string()}), 5);
  const std::string cut = golden("img_jpg_w3");
  std::filesystem::resize_file(cut, 4'000'000);
  EXPECT_EQ(inspect({cut}), 3);
  EXPECT_THAT(error, HasSubstr("img_jpg_w3.beton: header: expected an allocation table inside"));
}

TEST_F(InspectTest, WhereTellsWhichSamplesFitAndHowTheyAreDistributed) {
  const std::string file = golden("img_smart_w3");
  const auto facts = test::golden_beton_facts("img_smart_w3");
  std::vector<std::uint64_t> expected;
  std::map<std::int64_t, int> classes;
  const auto limit = facts["rows"][facts["rows"].size() / 2][0].get<std::int64_t>();
  const std::string where = fmt::format("mode == jpg and label <= {}", limit);
  for (std::uint64_t i = 0; i < facts["rows"].size(); ++i) {
    const auto& row = facts["rows"][i];
    if (row[1][0] != 0 || row[0] > limit) continue;
    expected.push_back(i);
    ++classes[row[0]];
  }
  ASSERT_FALSE(expected.empty());
  ASSERT_EQ(inspect({file, "--json", "--where", where}), 0) << error;
  const auto report = nlohmann::json::parse(output);
  EXPECT_EQ(report["ids"], expected);
  EXPECT_EQ(report["chosen"], expected.size());
  // Those of all samples would be taken for those of the chosen.
  EXPECT_FALSE(report["fields"][0].contains("min"));
  std::size_t counted = 0;
  for (const auto& bin : report["longer_side"]) counted += bin["count"].get<std::size_t>();
  EXPECT_EQ(counted, expected.size());
  ASSERT_EQ(report["classes"].size(), classes.size());
  for (const auto& entry : report["classes"])
    EXPECT_EQ(entry["count"], classes.at(entry["label"].get<std::int64_t>()));
  ASSERT_EQ(inspect({file, "--where", where}), 0) << error;
  EXPECT_THAT(output, AllOf(HasSubstr(fmt::format("{} of {} samples: {}", expected.size(),
                                                  facts["rows"].size(), expected[0])),
                            HasSubstr("longer side:"), HasSubstr("#")));
  EXPECT_EQ(inspect({file, "--where", "label < 5", "--sample", "0"}), 2);
  EXPECT_THAT(error, HasSubstr("expected --where or --sample, got both"));
}

TEST_F(InspectTest, TakesAWholeSampleOutIntoAFolder) {
  const std::string file = golden("allfields_w1");
  const auto out = folder_ / "sample";
  ASSERT_EQ(inspect({file, "--sample", "3", "--out", out.string()}), 0) << error;
  const data::BetonReader reader(file);
  std::size_t files = 0;
  for (std::size_t field = 0; field < reader.fields().size(); ++field) {
    const data::FieldInfo& info = reader.fields()[field];
    const auto blob =
        reader.blob_bytes(3, field) > 0 ? reader.blob(3, field) : std::span<const std::byte>();
    if (info.type == data::FieldType::bytes) {
      EXPECT_TRUE(std::ranges::equal(test::read_bytes(out / (info.name + ".bin")), blob));
    } else if (info.type == data::FieldType::json) {
      // Without the zero byte that FFCV puts behind it.
      EXPECT_TRUE(std::ranges::equal(test::read_bytes(out / (info.name + ".json")),
                                     blob.first(blob.size() - 1)));
    } else if (!info.dtype.empty()) {
      const auto npy = test::read_bytes(out / (info.name + ".npy"));
      EXPECT_TRUE(std::ranges::equal(std::span(npy).last(blob.size()), blob));
      const std::string head(reinterpret_cast<const char*>(npy.data()), npy.size() - blob.size());
      EXPECT_THAT(head, HasSubstr("'descr': '" + info.dtype + "'"));
    }
    if (info.type != data::FieldType::integer && info.type != data::FieldType::floating) ++files;
  }
  using Entries = std::filesystem::directory_iterator;
  EXPECT_EQ(std::distance(Entries(out), Entries()), files);
}

TEST_F(InspectTest, OneFieldGoesToAFileWhoseEndingFits) {
  const std::string file = golden("allfields_w1");
  const data::BetonReader reader(file);
  const auto of_type = [&](data::FieldType type) {
    return reader.fields()[reader.first_field(type)].name;
  };
  const std::string png = (folder_ / "x.png").string();
  ASSERT_EQ(inspect({golden("img_raw_w1"), "--sample", "0", "--out", png}), 0) << error;
  EXPECT_EQ(std::to_integer<int>(test::read_bytes(png)[1]), 'P');
  const std::string any = (folder_ / "x.any").string();
  EXPECT_EQ(
      inspect({file, "--sample", "0", "--out", any, "--field", of_type(data::FieldType::json)}), 0)
      << error;
  EXPECT_EQ(
      inspect({file, "--sample", "0", "--out", any, "--field", of_type(data::FieldType::ndarray)}),
      2);
  EXPECT_THAT(error, HasSubstr("expected a name ending in .npy for an array"));
  EXPECT_EQ(
      inspect({file, "--sample", "0", "--out", any, "--field", of_type(data::FieldType::integer)}),
      2);
  EXPECT_THAT(error, HasSubstr("expected a field with bytes"));
}

TEST_F(InspectTest, OptionsWithoutTheirPartnerAreRefused) {
  const std::string file = golden("scalars_only");
  EXPECT_EQ(inspect({file, "--sample", "0", "--field", "image"}), 2);
  EXPECT_THAT(error, HasSubstr("--field: expected --out FILE beside it, got none"));
  EXPECT_EQ(inspect({file, "--labels"}), 2);
  EXPECT_THAT(error, HasSubstr("--labels: expected --json beside it, got none"));
  EXPECT_EQ(inspect({file, "--labels", "--json", "--sample", "0"}), 2);
  EXPECT_THAT(error, HasSubstr("expected --labels or --sample, got both"));
}

TEST_F(InspectTest, OutputThatIsLostEndsWithCode5) {
  const std::string file = golden("scalars_only");
  const std::string told = (folder_ / "told").string();
  for (const std::string& command :
       {"inspect " + file, "inspect --json " + file, std::string("--version")}) {
    EXPECT_EQ(shell("", fmt::format("{} >/dev/full 2>{}", command, told)), 5) << command;
    const auto bytes = test::read_bytes(told);
    EXPECT_THAT(std::string(reinterpret_cast<const char*>(bytes.data()), bytes.size()),
                HasSubstr("error: cannot write to standard output: No space left on device"));
  }
}

/// `precast preview` and `precast bench`, whose pixels other tests look at.
TEST_F(InspectTest, PreviewAndBenchNameTheOptionThatIsWrong) {
  const std::string file = golden("img_jpg_w3");
  const std::string png = (folder_ / "x.png").string();
  const std::vector<std::pair<std::vector<std::string>, std::string>> cases = {
      {{"preview", "--seed=-1"}, "--seed: expected a number >= 0, got -1"},
      {{"preview", "--epoch=-1"}, "--epoch: expected a number >= 0, got -1"},
      {{"preview", "--train", "--crop=0:9,0:9"}, "expected --train or --crop, got both"},
      {{"preview", "--train", "--ratio=1"}, "expected --train or --ratio, got both"},
      {{"preview", "--ratio=1", "--crop=0:9,0:9"}, "expected --ratio or --crop, got both"},
      {{"preview", "--pipeline=[center_crop] junk"}, "expected one list or map"},
      {{"preview", "--pipeline=[random_resized_crop: {scale: [0.5, 2]}]"},
       "0 < smallest <= largest <= 1, got [0.5, 2]"},
      {{"bench", "--image_size=0"}, "--image_size: expected 1 to 8192, got 0"},
      {{"bench", "--runs=0"}, "--runs: expected 1 to 10000, got 0"},
      {{"bench", "--workers=0"}, "--workers: expected 1 to 2147483647, got 0"},
  };
  for (const auto& [options, message] : cases) {
    std::vector<std::string> arguments = options;
    if (options[0] == "bench") {
      arguments.insert(arguments.begin() + 1, {"loader", file});
    } else {
      arguments.insert(arguments.begin() + 1, {file, "-o", png});
    }
    Program program(arguments);
    EXPECT_EQ(program.wait(), 2) << message;
    EXPECT_THAT(program.err, HasSubstr(message));
  }
  EXPECT_FALSE(std::filesystem::exists(png));
}

TEST_F(InspectTest, EveryCommandHasHelp) {
  EXPECT_EQ(inspect({"--help"}), 0);
  EXPECT_THAT(output, AllOf(HasSubstr("usage: precast inspect FILE.beton"), HasSubstr("--labels")));
  Program write({"write", "--help"});
  EXPECT_EQ(write.wait(), 0);
  EXPECT_THAT(write.out,
              AllOf(HasSubstr("usage: precast write SOURCE"), HasSubstr("--image.mode")));
}

}  // namespace
}  // namespace precast::tools
