// Tests `precast bench loader SOURCE --table seeds`, its pipelines, and the description of the CPU
// in the results of benchmarks.
#include "tools/bench/loader_table.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <set>

#include "data/beton/reader.h"
#include "framework/core/error.h"
#include "framework/core/file.h"
#include "tests/data/beton/golden_beton.h"
#include "tests/support/message_matchers.h"
#include "tests/support/temporary_folder.h"
#include "tests/tools/precast_run.h"
#include "tools/bench/page_cache.h"
#include "tools/cli/cpu.h"

namespace precast::tools {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;
using test::Names;
using testing::HasSubstr;

class LoaderTableTest : public testing::Test {
 protected:
  /// Runs `bench loader` on 24 images; some are stored as JPEG, the others raw.
  [[nodiscard]] test::PrecastRun loader(std::vector<std::string> options) const {
    options.insert(options.begin(), {"bench", "loader", source_});
    return test::precast_run(options);
  }
  /// Measures a table briefly, with files in the folder `scratch`. @return the table as JSON
  [[nodiscard]] json table(std::vector<std::string> options) const {
    options.insert(options.end(), {"--table", "seeds", "--scratch", scratch(), "--runs", "2",
                                   "--seconds", "0.01", "--batch-size", "7", "--json"});
    const test::PrecastRun run = loader(options);
    EXPECT_EQ(run.code, 0) << run.err;
    return run.code == 0 ? json::parse(run.out) : json();
  }
  /// Runs one pass with a recipe. @return its figures
  [[nodiscard]] json load_recipe(const std::string& recipe,
                                 std::vector<std::string> options) const {
    write_file(folder_ / "recipe.yaml", recipe);
    options.insert(options.end(),
                   {"--config-file", folder_ / "recipe.yaml", "--runs", "1", "--passes", "1",
                    "--image-size", "32", "--workers", "1", "--json"});
    const test::PrecastRun run = loader(options);
    EXPECT_EQ(run.code, 0) << run.err;
    return run.code == 0 ? json::parse(run.out).at("points").at(0).at("runs").at(0) : json();
  }
  void expect_usage_error(const std::vector<std::string>& options,
                          const test::NamesMatcher& facts) const {
    const test::PrecastRun run = loader(options);
    EXPECT_EQ(run.code, 2) << options[0];
    EXPECT_THAT(run.err, facts);
  }
  [[nodiscard]] std::string scratch() const { return folder_ / "scratch"; }
  [[nodiscard]] std::size_t files_written() const {
    if (!fs::exists(scratch())) return 0;
    return static_cast<std::size_t>(
        std::distance(fs::directory_iterator(scratch()), fs::directory_iterator()));
  }

  test::TemporaryFolder folder_;
  std::string source_ = test::put_golden_beton(folder_.path(), "img_prop_nette_w1");
};

TEST(SeedsRows, AreEachKindOfFileFromMemoryAndDiskAndMoreWorkersThanCores) {
  for (const int cores : {1, 2, 16}) {
    std::set<std::string> names, memory, disk;
    std::set<int> workers;
    for (const LoaderRow& row : seeds_rows(cores)) {
      EXPECT_TRUE(names.insert(row.name()).second) << row.name();
      (row.from_disk ? disk : memory).emplace(row.file->name);
      EXPECT_EQ(row.image_size_px, 224);
      if (!row.from_disk) workers.insert(row.workers);
      EXPECT_TRUE(!row.from_disk || row.workers == cores) << row.name();
    }
    EXPECT_EQ(memory, (std::set<std::string>{"jpg", "raw", "mix"}));
    EXPECT_EQ(disk, (std::set<std::string>{"jpg", "raw", "mix", "raw512"}));
    EXPECT_EQ(workers, (std::set<int>{1, 2, cores, 2 * cores}));
  }
}

TEST_F(LoaderTableTest, WritesItsFilesAndMeasuresEveryRowInEveryRound) {
  const json figures = table({});
  EXPECT_EQ(figures.at("table"), "seeds");
  EXPECT_EQ(figures.at("images"), 24);
  ASSERT_EQ(figures.at("rows").size(), seeds_rows(usable_cores()).size());
  for (const json& row : figures.at("rows")) {
    const bool disk = row.at("from") == "disk";
    ASSERT_EQ(row.at("runs").size(), 2U) << row.at("name");
    EXPECT_GT(row.at("images_per_second"), 0);
    EXPECT_LE(row.at("images_per_cpu_second_least"), row.at("images_per_cpu_second"));
    EXPECT_GT(row.at("megabytes_per_second"), 0);
    EXPECT_EQ(row.at("more_threads_than_cores"), row.at("workers") > usable_cores());
    EXPECT_EQ(row.contains("cached_before"), disk);
    for (const json& run : row.at("runs")) {
      const int images = run.at("images");
      EXPECT_EQ(images % 24, 0);
      if (!disk) continue;
      EXPECT_EQ(images, 24 * row.at("copies").get<int>());
      EXPECT_GE(run.at("cached_before"), 0);
      EXPECT_LE(run.at("cached_before"), 1);
    }
  }
}

TEST_F(LoaderTableTest, ItsFilesAreStoredAsTheirRowsSay) {
  const json figures = table({"--rows", ", precast"});
  std::size_t mixed = 0;
  for (const json& row : figures.at("rows")) {
    const data::BetonReader reader(row.at("path").get<std::string>());
    ASSERT_EQ(reader.size(), 24 * row.at("copies").get<std::uint64_t>());
    ASSERT_EQ(reader.fields().size(), 2U);
    std::uint64_t raw = 0;
    for (std::uint64_t i = 0; i < reader.size(); ++i)
      raw += reader.image_mode(i, 0) == data::ImageMode::raw ? 1 : 0;
    EXPECT_TRUE(row.at("mode") != "jpg" || raw == 0U);
    EXPECT_TRUE(row.at("mode") != "raw" || raw == reader.size());
    if (row.at("mode") == "proportion" && raw > 0 && raw < reader.size()) ++mixed;
  }
  EXPECT_GT(mixed, 0U);
}

TEST_F(LoaderTableTest, FilesAreWrittenOnceForEachSourceAndChoiceOfImages) {
  const std::string first = table({"--rows", "memory raw"}).at("rows").at(0).at("path");
  const auto time = fs::last_write_time(first);
  EXPECT_EQ(files_written(), 1U);
  EXPECT_EQ(table({"--rows", "memory raw"}).at("rows").at(0).at("path"), first);
  EXPECT_EQ(fs::last_write_time(first), time);
  const json some = table({"--rows", "memory raw", "--count", "10"});
  EXPECT_EQ(some.at("images"), 10);
  EXPECT_EQ(data::BetonReader(some.at("rows").at(0).at("path").get<std::string>()).size(), 10U);
  EXPECT_EQ(files_written(), 2U);
  fs::last_write_time(source_, fs::last_write_time(source_) + std::chrono::seconds(5));
  EXPECT_NE(table({"--rows", "memory raw"}).at("rows").at(0).at("path"), first);
}

TEST_F(LoaderTableTest, ADryRunWritesNothing) {
  const json plan = table({"--dry-run", "--rows", "memory"});
  ASSERT_FALSE(plan.at("rows").empty());
  for (const json& row : plan.at("rows")) {
    EXPECT_EQ(row.at("from"), "memory");
    EXPECT_FALSE(row.contains("runs"));
  }
  EXPECT_EQ(files_written(), 0U);
}

TEST_F(LoaderTableTest, TextNamesTheCpuAndMarksMoreThreadsThanCores) {
  const test::PrecastRun run = loader({"--table", "seeds", "--scratch", scratch(), "--runs", "1",
                                       "--seconds", "0.01", "--rows", "raw"});
  ASSERT_EQ(run.code, 0) << run.err;
  EXPECT_THAT(run.out, HasSubstr(cpu_text(cpu_facts())));
  EXPECT_THAT(run.out, HasSubstr("raw 256 px"));
  EXPECT_THAT(run.out, HasSubstr(" %"));
  EXPECT_THAT(run.out, HasSubstr("\n* "));
}

TEST_F(LoaderTableTest, OptionsThatDoNotFitAreUsageErrors) {
  expect_usage_error({"--table", "sizes"}, Names("--table", "seeds", "sizes"));
  expect_usage_error({"--table", "seeds", "--workers", "4"}, Names("--table", "--workers"));
  expect_usage_error({"--table", "seeds", "--val"}, Names("--table", "--val"));
  expect_usage_error({"--table", "seeds", "--format", "u8,f16"}, Names("--table"));
  expect_usage_error({"--table", "seeds", "--rows", "png"}, Names("--rows", "png"));
  expect_usage_error({"--table", "seeds", "--count", "0"}, Names("--count", 1, 0));
  for (const char* option : {"--scratch=x", "--count=3", "--rows=raw", "--dry-run"})
    expect_usage_error({option}, Names("--table"));
  EXPECT_EQ(files_written(), 0U);
}

TEST_F(LoaderTableTest, ASourceWithoutImagesIsInvalid) {
  const std::string numbers = test::put_golden_beton(folder_.path(), "scalars_only");
  const auto run = test::precast_run({"bench", "loader", numbers, "--table", "seeds"});
  EXPECT_EQ(run.code, 3);
  EXPECT_THAT(run.err, Names(numbers));
}

TEST_F(LoaderTableTest, ARecipesPipelineReplacesTheStandardOne) {
  const std::string one =
      "pipeline: {train: [center_crop], val: [center_crop, convert: {type: f32}]}";
  const std::string two =
      "pipeline:\n  train:\n    a: {field: image, transforms: [random_resized_crop]}\n"
      "    b: {field: image, transforms: [random_resized_crop]}\n";
  const auto bytes = [&](const std::string& recipe, const std::vector<std::string>& options) {
    const json run = load_recipe(recipe, options);
    EXPECT_EQ(run.at("images"), 24);
    return run.at("planned_bytes").get<double>();
  };
  const double u8 = bytes(one, {});
  // Each image in the ring has 32 x 32 x 3 values.
  EXPECT_GT(bytes(one, {"--val"}), u8 + 3 * 32 * 32 * 3 * 24) << "the recipe's f32 instead of u8";
  EXPECT_GT(bytes(one, {"--format", "f32"}), u8 + 3 * 32 * 32 * 3 * 24)
      << "the recipe names no type";
  EXPECT_EQ(bytes(one, {"--val", "--format", "f16"}), bytes(one, {"--val"}))
      << "the recipe names a type";
  EXPECT_GT(bytes(two, {}), u8 + 32 * 32 * 3 * 24) << "two images per sample";
}

TEST_F(LoaderTableTest, TheRecipeOfAPipelineIsAnOptionInEitherSpelling) {
  const std::string recipe = folder_ / "recipe.yaml";
  write_file(recipe, "pipeline: {train: [center_crop]}");
  for (const char* option : {"--config-file", "--config_file"}) {
    const test::PrecastRun run =
        loader({option, recipe, "--runs", "1", "--passes", "1", "--image-size", "32", "--json"});
    ASSERT_EQ(run.code, 0) << option << run.err;
    EXPECT_EQ(json::parse(run.out).at("file"), source_) << option;
  }
}

TEST_F(LoaderTableTest, HelpIsThatOfTheLoaderEvenIfARecipeIsNamed) {
  const test::PrecastRun loaders = loader({"--help"});
  EXPECT_THAT(loaders.out, HasSubstr("--table"));
  const test::PrecastRun recipes = test::precast_run({"bench", "loader", "recipe.yaml", "-h"});
  EXPECT_EQ(recipes.code, 0) << recipes.err;
  EXPECT_EQ(recipes.out, loaders.out);
}

TEST_F(LoaderTableTest, MistakesInARecipeHaveTheirPlace) {
  const std::string recipe = folder_ / "wrong.yaml";
  write_file(recipe, "pipeline:\n  train: [center_corp]\n");
  expect_usage_error({"--config-file", recipe}, Names(recipe + ":2:11", "center_corp"));
  expect_usage_error({"--config-file", recipe, "--pipeline", "[center_crop]"},
                     Names("--pipeline", "--config-file"));
  expect_usage_error({"--pipeline", "[center_corp]"}, Names("--pipeline", "center_corp"));
}

TEST_F(LoaderTableTest, CachedShareOfAFileJustWrittenIsAll) {
  write_file(folder_ / "full", std::string(100'000, 'x'));
  write_file(folder_ / "empty", "");
  EXPECT_EQ(cached_share(folder_ / "full"), 1);
  EXPECT_EQ(cached_share(folder_ / "empty"), 0);
  EXPECT_THROW((void)cached_share(folder_ / "none"), IoError);
}

TEST_F(LoaderTableTest, EveryBenchmarkSaysWhatTheCpuIs) {
  const json cpu = cpu_json(cpu_facts());
  ASSERT_EQ(cpu.size(), 4U);
  const std::vector<std::vector<std::string>> commands = {
      {"loader", source_, "--runs", "1", "--passes", "1", "--image-size", "32"},
      {"decode", source_, "--runs", "1", "--seconds", "0", "--decoder", "own"}};
  for (std::vector<std::string> command : commands) {
    command.insert(command.begin(), "bench");
    EXPECT_THAT(test::precast_run(command).out, HasSubstr(cpu_text(cpu_facts())));
    command.emplace_back("--json");
    const json figures = json::parse(test::precast_run(command).out);
    for (const auto& [key, value] : cpu.items()) EXPECT_EQ(figures.at(key), value) << key;
  }
  const json doctor = json::parse(test::precast_run({"doctor", "--json"}).out);
  EXPECT_EQ(doctor.at("machine").at("caches_kib"), cpu.at("caches_kib"));
  EXPECT_EQ(doctor.at("machine").at("cpu"), cpu.at("processor"));
  EXPECT_EQ(doctor.at("libraries").at("simd").at("in_use"), cpu.at("simd"));
}

TEST(CpuText, NamesLevelsAndSizesAndWhatIsUnknown) {
  const CpuFacts known = {"Xeon 7", 8, {"AVX3", "AVX2"}, {48, 2048, 1536}};
  EXPECT_THAT(cpu_text(known), Names("Xeon 7", 8, "AVX3", "L1d 48 KiB", "L2 2 MiB", "1536 KiB"));
  const CpuFacts unknown = {"unknown", 1, {}, {0, 512, 0}};
  EXPECT_THAT(cpu_text(unknown), Names("none", "L1d unknown", "L2 512 KiB", "L3 unknown"));
  const json facts = cpu_json(unknown);
  EXPECT_EQ(facts.at("simd"), "none");
  EXPECT_TRUE(facts.at("caches_kib").at("l1d").is_null());
  EXPECT_EQ(facts.at("caches_kib").at("l2"), 512);
}

}  // namespace
}  // namespace precast::tools
