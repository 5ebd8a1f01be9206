// `precast bench loader` and `precast bench decode`, as a user starts them.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <fstream>
#include <nlohmann/json.hpp>

#include "data/beton/format.h"
#include "data/beton/reader.h"
#include "framework/core/error.h"
#include "framework/core/file.h"
#include "framework/core/system.h"
#include "tests/data/beton/golden_beton.h"
#include "tests/support/message_matchers.h"
#include "tests/support/paths.h"
#include "tests/support/program.h"
#include "tests/support/temporary_folder.h"
#include "tools/bench/process_memory.h"
#include "tools/bench/read_pass.h"
#include "tools/bench/side_by_side.h"

namespace precast::tools {
namespace {

using nlohmann::json;
using test::Names;
using testing::HasSubstr;

class BenchDataTest : public testing::Test {
 protected:
  struct Run {
    int code = 0;
    std::string out;
    std::string err;
  };
  static Run bench(std::vector<std::string> arguments) {
    arguments.insert(arguments.begin(), {test::bin_dir() + "/precast", "bench"});
    test::Program program(arguments);
    const int code = program.wait();
    return {code, program.out, program.err};
  }
  static void expect_failure(int code, const std::vector<std::string>& arguments,
                             const test::NamesMatcher& facts) {
    const Run run = bench(arguments);
    EXPECT_EQ(run.code, code) << run.err;
    EXPECT_THAT(run.err, facts);
  }
  /// Writes a golden dataset. The default has 24 images; some are stored as JPEG, the others raw.
  [[nodiscard]] std::string dataset(const std::string& golden = "img_prop_nette_w1") const {
    test::write_bytes(folder_ / "d.beton", test::golden_beton(golden));
    return folder_ / "d.beton";
  }
  /// Measures the loader briefly. @return its output, which is JSON.
  [[nodiscard]] json load(const std::string& file, std::vector<std::string> options) const {
    options.insert(options.begin(), {"loader", file, "--json"});
    const auto preset = [&](const std::string& option, const std::string& value) {
      if (std::ranges::find(options, option) == options.end())
        options.insert(options.end(), {option, value});
    };
    preset("--runs", "1");
    preset("--passes", "2");
    preset("--image-size", "32");
    preset("--workers", "1");
    const Run run = bench(options);
    EXPECT_EQ(run.code, 0) << run.err;
    return run.code == 0 ? json::parse(run.out) : json();
  }

  test::TemporaryFolder folder_;
};

TEST_F(BenchDataTest, LoaderCountsEveryImageOfEveryPassAndProcess) {
  const std::string file = dataset();
  const json figures = load(file, {"--passes", "3", "--processes", "2", "--batch-size", "5"});
  EXPECT_EQ(figures.at("samples"), 24);
  const json& point = figures.at("points").at(0);
  EXPECT_EQ(point.at("settings").at("processes"), 2);
  const json& run = point.at("runs").at(0);
  EXPECT_EQ(run.at("images"), 2 * 3 * 24);
  for (const char* key : {"seconds", "cpu_seconds", "images_per_second", "images_per_cpu_second",
                          "peak_resident_bytes", "proportional_bytes", "anonymous_bytes"})
    EXPECT_GT(run.at(key).get<double>(), 0) << key;
  EXPECT_NEAR(run.at("images_per_cpu_second").get<double>(),
              144 / run.at("cpu_seconds").get<double>(), 1e-6);
  EXPECT_DOUBLE_EQ(point.at("images_per_second_to_first").get<double>(), 1);
}

TEST_F(BenchDataTest, ListsSweepAllCombinationsAndEachRoundMeasuresEach) {
  const json figures = load(
      dataset(), {"--workers", "1,4", "--batch-size", "4,8", "--order", "random,sequential",
                  "--format", "u8,f32", "--image-size", "16,24", "--runs", "2", "--passes", "1"});
  const json& points = figures.at("points");
  ASSERT_EQ(points.size(), 32U);
  std::set<std::string> settings;
  for (const json& point : points) {
    settings.insert(point.at("settings").dump());
    ASSERT_EQ(point.at("runs").size(), 2U);
    EXPECT_LE(point.at("images_per_second_least"), point.at("images_per_second"));
    EXPECT_LE(point.at("images_per_second"), point.at("images_per_second_most"));
  }
  EXPECT_EQ(settings.size(), 32U);
}

TEST_F(BenchDataTest, APartOfEachPassIsWholeBatches) {
  const json figures = load(dataset(), {"--pass-samples", "10", "--batch-size", "5"});
  // The batches have 5, 5, 5, 5 and 4 samples; the last two are measured.
  EXPECT_EQ(figures.at("points").at(0).at("runs").at(0).at("images"), 2 * 9);
}

TEST_F(BenchDataTest, EveryOrderFormatLayoutAndWayOfReadingLoadsAllImages) {
  const std::string file = dataset();
  for (const std::vector<std::string>& options : std::vector<std::vector<std::string>>{
           {"--order", "sequential,quasi_random,class_balanced", "--in-memory", "1,0"},
           {"--format", "f32,f16,bf16", "--layout", "nhwc,nchw"},
           {"--jpeg-index", "on,off"}}) {
    const json figures = load(file, options);
    for (const json& point : figures.at("points")) {
      const json& run = point.at("runs").at(0);
      EXPECT_EQ(run.at("images"), 2 * 24) << point.at("settings");
      EXPECT_GT(run.at("planned_bytes"), 0);
      EXPECT_GT(run.at("worker_seconds_processing"), 0);
    }
  }
}

TEST_F(BenchDataTest, AColdPassThroughTheProcessCacheReadsTheFile) {
  const json figures = load(dataset(), {"--cold", "--in-memory", "1,0"});
  const json& points = figures.at("points");
  EXPECT_EQ(points.at(0).at("runs").at(0).at("disk_bytes"), 0);
  for (const json& point : points) {
    EXPECT_GE(point.at("cached_before"), 0);
    EXPECT_LE(point.at("cached_before"), 1);
  }
  EXPECT_GT(points.at(1).at("runs").at(0).at("disk_bytes"), 0);
}

TEST_F(BenchDataTest, AColdMeasurementIsOnePassUnlessPassesAreGiven) {
  const auto images = [&](const std::vector<std::string>& options) {
    const Run run = bench(options);
    EXPECT_EQ(run.code, 0) << run.err;
    return json::parse(run.out).at("points").at(0).at("runs").at(0).at("images").get<int>();
  };
  std::vector<std::string> options = {"loader", dataset(),      "--cold", "--runs",    "1",
                                      "--json", "--image-size", "32",     "--workers", "1"};
  EXPECT_EQ(images(options), 24);
  options.insert(options.end(), {"--passes", "2"});
  EXPECT_EQ(images(options), 48);
  EXPECT_EQ(bench({"loader", dataset(), "--cold", "--seconds", "1"}).code, 2);
}

TEST_F(BenchDataTest, TimeEndsAMeasurementAfterWholePasses) {
  const json figures = load(dataset(), {"--passes", "0", "--seconds", "0.05"});
  const json run = figures.at("points").at(0).at("runs").at(0);
  EXPECT_GE(run.at("seconds").get<double>(), 0.05);
  EXPECT_EQ(run.at("images").get<int>() % 24, 0);
}

TEST_F(BenchDataTest, AColdPassAndATableAndAChart) {
  const std::string svg = folder_ / "sweep.svg";
  const std::string many = std::to_string(usable_cores() + 1);
  const Run run = bench({"loader", dataset(), "--cold", "--passes", "1", "--runs", "1",
                         "--image-size", "32", "--workers", "1," + many, "--svg", svg});
  ASSERT_EQ(run.code, 0) << run.err;
  EXPECT_THAT(run.out, Names(24, "workers   img/s"));
  EXPECT_THAT(run.out, HasSubstr("\n* ")) << "rows with more threads than cores are marked";
  EXPECT_THAT(run.out, HasSubstr("\nvs first: ")) << "the column is explained";
  const auto bytes = read_file(svg);
  EXPECT_THAT(std::string(reinterpret_cast<const char*>(bytes.data()), bytes.size()),
              HasSubstr("workers " + many));
}

TEST_F(BenchDataTest, DecodeTimesEveryDecoderOnWholeImagesAndCrops) {
  const Run run = bench({"decode", dataset(), "--runs", "2", "--seconds", "0", "--json"});
  ASSERT_EQ(run.code, 0) << run.err;
  const json figures = json::parse(run.out);
  EXPECT_EQ(figures.at("jpegs").get<int>() + figures.at("raw").get<int>(), 24);
  EXPECT_GT(figures.at("raw"), 0);
  EXPECT_GT(figures.at("index_bytes"), 0);
  const json& rows = figures.at("rows");
  ASSERT_EQ(rows.size(), 6U);
  for (const json& row : rows) {
    EXPECT_GT(row.at("decode_us").get<double>(), 0);
    EXPECT_GT(row.at("resize_us").get<double>(), 0);
    const json& one = row.at("runs").at(0);
    EXPECT_EQ(one.at("images"), figures.at("jpegs"));
    EXPECT_NEAR(
        one.at("decoded_images_per_cpu_second").get<double>() * one.at("decode_us").get<double>(),
        1e6, 1);
  }
}

TEST_F(BenchDataTest, DecodeExplainsItsRatios) {
  const Run run = bench({"decode", dataset(), "--runs", "1", "--seconds", "0"});
  ASSERT_EQ(run.code, 0) << run.err;
  EXPECT_THAT(run.out, HasSubstr("\nvs first: "));
}

TEST_F(BenchDataTest, DecodeReadsJpegFilesOnManyThreads) {
  const data::BetonReader reader(dataset("img_jpg_w3"));
  std::vector<std::string> arguments = {"decode",    "--runs", "1",         "--seconds", "0",
                                        "--decoder", "own",    "--workers", "3",         "--json"};
  for (std::uint64_t sample = 0; sample < 5; ++sample) {
    const auto bytes = reader.image(sample, reader.first_field(data::FieldType::image)).bytes;
    arguments.push_back(folder_ / (std::to_string(sample) + ".jpg"));
    test::write_bytes(arguments.back(), {bytes.begin(), bytes.end()});
  }
  const Run run = bench(arguments);
  ASSERT_EQ(run.code, 0) << run.err;
  EXPECT_EQ(json::parse(run.out).at("jpegs"), 5);
}

TEST_F(BenchDataTest, WrongArgumentsEndWithCodeTwo) {
  const std::string file = dataset();
  expect_failure(2, {"loader"},
                 Names("FILE.beton", "precast bench loader"));  // the wording is tested: a command
  expect_failure(2, {"loader", file, "--workers", "1,x"}, Names("--workers", "x"));
  expect_failure(2, {"loader", file, "--workers", "1,,2"}, Names("--workers", "1,,2"));
  expect_failure(2, {"loader", file, "--batch-size", "0"}, Names("--batch-size", 1, 0));
  expect_failure(2, {"loader", file, "--order", "alphabetic"},
                 Names("--order", "random", "alphabetic"));
  expect_failure(2, {"loader", file, "--format", "f8"}, Names("--format", "u8", "f8"));
  expect_failure(2, {"loader", file, "--processes", "0"}, Names("--processes", 1, 0));
  expect_failure(2, {"loader", file, "--seconds", "0"}, Names("--seconds", 0));
  expect_failure(2, {"loader", file, "--in-memory", "2"}, Names("--in-memory", 0, 1, 2));
  expect_failure(2, {"loader", file, "--layout", "chw"},
                 Names("--layout", "nhwc", "nchw", "'chw'"));
  expect_failure(2, {"loader", file, "--image-size=0"}, Names("--image-size", 1, 8192, 0));
  expect_failure(2, {"loader", file, "--runs=0"}, Names("--runs", 1, 10000, 0));
  expect_failure(2, {"loader", file, "--workers=-1"}, Names("--workers", 0, 2147483647, -1));
  expect_failure(2, {"decode"},
                 Names("FILE", "precast bench decode"));  // the wording is tested: a command
  expect_failure(2, {"decode", file, "--decoder", "turbo"},
                 Names("--decoder", "libjpeg", "'turbo'"));
  expect_failure(2, {"decode", file, "--region", "half"},
                 Names("--region", "full", "crop", "half"));
  expect_failure(2, {"decode", file, "--workers", "-1"}, Names("--workers", 0, 1024, -1));
}

TEST_F(BenchDataTest, FilesThatAreMissingOrWrongHaveCodesOfTheirOwn) {
  const std::string text = folder_ / "text.beton";
  write_file(text, "no dataset");
  expect_failure(5, {"loader", folder_ / "none.beton"}, Names(folder_ / "none.beton"));
  expect_failure(5, {"decode", folder_ / "none.jpg"}, Names(folder_ / "none.jpg"));
  expect_failure(3, {"loader", text}, Names(text));
  expect_failure(3, {"decode", text}, Names(text));
  const std::string noise = folder_ / "noise.jpg";
  write_file(noise, "no image");
  expect_failure(3, {"decode", noise}, Names(noise));
  const std::string raw = dataset("img_raw_w1");
  expect_failure(3, {"decode", raw}, Names(raw, "JPEG"));
}

TEST_F(BenchDataTest, ADamagedSampleEndsTheBenchAsItEndsALoader) {
  std::vector<std::byte> bytes = test::golden_beton("img_jpg_w3");
  // Damages the start of every JPEG, but not the metadata.
  for (std::size_t i = 0; i + 2 < bytes.size(); ++i) {
    if (bytes[i] == std::byte{0xFF} && bytes[i + 1] == std::byte{0xD8} &&
        bytes[i + 2] == std::byte{0xFF})
      bytes[i + 1] = std::byte{0};
  }
  const std::string file = folder_ / "damaged.beton";
  test::write_bytes(file, bytes);
  expect_failure(3, {"loader", file, "--runs", "1", "--passes", "1", "--processes", "2"},
                 Names(file));
  expect_failure(3, {"decode", file, "--runs", "1", "--seconds", "0"}, Names(file, "sample 0"));
}

TEST(SideBySide, AllStartTogetherAndReportInOrder) {
  const auto told = run_side_by_side(
      3,
      [](int number, const std::function<void()>& start) {
        start();
        return "process " + std::to_string(number);
      },
      [] {});
  EXPECT_EQ(told, (std::vector<std::string>{"process 0", "process 1", "process 2"}));
}

TEST(ProcessMemoryTest, PagesSharedAfterAForkAreDividedAmongTheProcesses) {
  const std::vector<char> shared(64 << 20, 1);
  const std::uint64_t alone = process_memory().anonymous;
  EXPECT_GE(alone, shared.size());
  const auto told = run_side_by_side(
      2,
      [](int, const std::function<void()>& start) {
        start();
        return std::to_string(process_memory().anonymous);
      },
      [] {});
  for (const std::string& bytes : told) {
    EXPECT_GT(std::stoull(bytes), 0U);
    EXPECT_LT(std::stoull(bytes), alone / 4 * 3);
  }
}

TEST(SideBySide, AFailureKeepsItsMessageAndExitCodeAndWaitsForNobody) {
  try {
    static_cast<void>(run_side_by_side(
        2,
        [](int number, const std::function<void()>& start) -> std::string {
          if (number == 1) throw DataError("sample 7 is damaged");
          start();
          return "done";
        },
        [] {}));
    FAIL() << "nothing was thrown";
  } catch (const Error& error) {
    EXPECT_STREQ(error.what(), "sample 7 is damaged");
    EXPECT_EQ(error.exit_code(), ExitCode::dataset_invalid);
  }
}

TEST(ReadPass, CountsImagesAndThrowsTheErrorOfAThread) {
  std::vector<std::byte> bytes = test::golden_beton("img_raw_w1");
  const data::BetonReader reader(bytes, "d.beton");
  const ReadPass pass = read_all_images(reader, 2);
  EXPECT_EQ(pass.images, static_cast<std::int64_t>(reader.size()));
  EXPECT_GT(pass.sum, 0U);
  // The file changes: the pointer to the first image is now invalid.
  const std::size_t records = data::kHeaderBytes + reader.fields().size() * data::kFieldBytes;
  std::fill_n(bytes.begin() + static_cast<std::ptrdiff_t>(records), data::kImageMetadataBytes,
              std::byte{0xFF});
  EXPECT_THROW(static_cast<void>(read_all_images(reader, 2)), DataError);
}

TEST(SideBySide, TheExitCodeOfAProcessThatExitsIsKept) {
  try {
    static_cast<void>(run_side_by_side(
        1, [](int, const auto&) -> std::string { ::_exit(5); }, [] {}));
    FAIL() << "no error";
  } catch (const Error& error) {
    EXPECT_EQ(error.exit_code(), ExitCode::io);
  }
}

TEST(SideBySide, AKilledProcessIsReported) {
  try {
    static_cast<void>(run_side_by_side(
        1,
        [](int, const std::function<void()>&) -> std::string {
          ::raise(SIGKILL);
          return "";
        },
        [] {}));
    FAIL() << "nothing was thrown";
  } catch (const Error& error) {
    EXPECT_THAT(error.what(), Names("signal 9"));
  }
}

TEST_F(BenchDataTest, FilesWithoutImagesAreLoaded) {
  for (const char* golden : {"bytes_first_empty", "scalars_only"}) {
    const json run = load(dataset(golden), {"--in-memory", "1,0"});
    for (const json& point : run["points"]) EXPECT_GT(point["images_per_second"], 0) << golden;
  }
}

TEST_F(BenchDataTest, CustomFieldsAreToldAndTheOthersLoaded) {
  const std::string file = dataset("custom_w1");
  expect_failure(3, {"loader", file}, Names("--field-layout boxes=BYTES:ALIGNMENT"));
  expect_failure(2, {"loader", file, "--field-layout", "boxes"},
                 Names("--field", "NAME=BYTES:ALIGNMENT", "boxes"));
  const json run = load(file, {"--field-layout", "boxes=10:1", "--field-layout", "point=24:8"});
  EXPECT_EQ(run["samples"], 5);
}

TEST_F(BenchDataTest, DamagedSamplesAreReplacedAndListedIfAsked) {
  const std::string file = dataset("img_jpg_w3");
  std::vector<std::byte> bytes = test::read_bytes(file);
  const auto at = static_cast<std::ptrdiff_t>(data::BetonReader(file).blob_offset(9, 0));
  std::fill_n(bytes.begin() + at, 30, std::byte{0});
  test::write_bytes(file, bytes);
  expect_failure(3, {"loader", file}, Names("sample 9"));
  expect_failure(2, {"loader", file, "--on-corrupt", "ignore"}, Names("--on-corrupt", "ignore"));
  const json run = load(file, {"--on-corrupt", "replace"});
  ASSERT_EQ(run["replaced"].size(), 1U);
  EXPECT_EQ(run["replaced"][0][0], 9);
  EXPECT_EQ(run["replaced"][0][1], 10);
  const Run text = bench({"loader", file, "--on-corrupt", "replace", "--runs", "1", "--passes", "1",
                          "--image-size", "32", "--workers", "1"});
  EXPECT_THAT(text.out, Names(9, 10));
}

}  // namespace
}  // namespace precast::tools
