// eval and predict on the folder of a run, and predictions for image files.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <csignal>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <map>
#include <nlohmann/json.hpp>
#include <sstream>

#include "framework/core/archive/checkpoint_folder.h"
#include "framework/core/archive/npy.h"
#include "framework/core/archive/weights_file.h"
#include "framework/process/child_process.h"
#include "tests/data/beton/golden_beton.h"
#include "tests/data/sources/sample_images.h"
#include "tests/support/message_matchers.h"
#include "tests/support/paths.h"
#include "tests/support/temporary_folder.h"
#include "tests/support/text_file.h"

namespace precast::tools {
namespace {

namespace fs = std::filesystem;
using test::Names;
using testing::ElementsAre;

/// A run with three classes and averaged weights, trained in `work` with relative paths on 8
/// images: `work/{tree, tree.beton, runs/r}`.
class PredictTest : public ::testing::Test {
 protected:
  static void SetUpTestSuite() {
    folder_ = new test::TemporaryFolder();
    fs::create_directories(work());
    test::make_class_tree(work() / "tree");
    // Removes this CMYK file, which the dataset could not store unchanged.
    fs::remove(work() / "tree/dog/2.jpg");
    const ChildResult written =
        precast({"write", "tree", "tree.beton", "--image.mode=keep", "--image.passthrough=true"});
    ASSERT_EQ(written.exit_code, 0) << written.errors;
    const ChildResult trained =
        precast({"train", "--data.train_dataset=tree.beton", "--data.val_dataset=tree.beton",
                 "--training.batch_size=4", "--training.epochs=2", "--resolution.min_res=32",
                 "--resolution.max_res=32", "--validation.resolution=32", "--lr.lr=0.01",
                 "--training.use_blurpool=1", "--methods=[ema: {decay: 0.5}]", "--logging.run_id=r",
                 "--training.device=cpu", "--validation.batch_size=3"});
    ASSERT_EQ(trained.exit_code, 0) << trained.errors;
  }
  static void TearDownTestSuite() {
    delete folder_;
    folder_ = nullptr;
  }

  static fs::path work() { return *folder_ / "work"; }
  static fs::path run() { return work() / "runs/r"; }
  /// Runs `precast ARGS...` in the folder `where`.
  static ChildResult precast(const std::vector<std::string>& args, const fs::path& where) {
    std::vector<std::string> all = {"/bin/sh", "-c", "cd \"$0\" && exec \"$@\"", where.string(),
                                    test::bin_dir() + "/precast"};
    all.insert(all.end(), args.begin(), args.end());
    return run_child(all, std::chrono::minutes(3));
  }
  static ChildResult precast(const std::vector<std::string>& args) { return precast(args, work()); }
  static nlohmann::json json_of(const ChildResult& child) {
    EXPECT_EQ(child.exit_code, 0) << child.errors;
    return nlohmann::json::parse(child.output, nullptr, /*allow_exceptions=*/false);
  }
  static nlohmann::json summary() {
    return nlohmann::json::parse(std::ifstream(run() / "summary.json"));
  }
  static fs::path newest_checkpoint() {
    fs::path newest;
    for (const auto& entry : fs::directory_iterator(run() / "checkpoints"))
      newest = std::max(newest, entry.path());
    return newest;
  }
  static std::vector<std::string> lines_of(const std::string& text) {
    std::vector<std::string> lines;
    std::istringstream stream(text);
    for (std::string line; std::getline(stream, line);) lines.push_back(line);
    return lines;
  }
  static std::vector<float> array(const fs::path& path) {
    const NpyArray stored = read_npy(path);
    std::vector<float> values(stored.bytes.size() / sizeof(float));
    std::memcpy(values.data(), stored.bytes.data(), stored.bytes.size());
    return values;
  }
  /// The images in the dataset's order.
  static std::vector<std::string> photos() {
    return {"tree/cat/a.JPEG",     "tree/cat/b.jpg", "tree/cat/c.png",  "tree/cat/old/0.jpg",
            "tree/cat-like/x.jpg", "tree/dog/1.jpg", "tree/dog/10.jpg", "tree/dog/3.jpg"};
  }

  static test::TemporaryFolder* folder_;
};
test::TemporaryFolder* PredictTest::folder_ = nullptr;

TEST_F(PredictTest, ARunIsEvaluatedAsItEvaluatedItself) {
  const auto figures = json_of(precast({"eval", "runs/r", "--json"}));
  EXPECT_EQ(figures.at("top_1"), summary().at("top_1"));
  EXPECT_EQ(figures.at("val_loss"), summary().at("val_loss"));
  EXPECT_EQ(figures.at("run"), "runs/r");
  EXPECT_EQ(figures.at("weights"), "runs/r/final_weights.safetensors");
  EXPECT_EQ(figures.at("dataset"), "tree.beton");
  for (const char* named : {"runs/r/", "runs/r/params.json", "runs/r/final_weights.pt"})
    EXPECT_EQ(json_of(precast({"eval", named, "--json"})).at("val_loss"), summary().at("val_loss"));
  const ChildResult text = precast({"eval", "runs/r"});
  EXPECT_THAT(text.output, Names("runs/r", "runs/r/final_weights.safetensors", "tree.beton"));
}

TEST_F(PredictTest, ACheckpointIsEvaluatedWithItsAverages) {
  const fs::path checkpoint = fs::relative(newest_checkpoint(), work());
  const std::string weights = checkpoint / "model.safetensors";
  for (const std::string& named :
       {checkpoint.string(), weights, std::string("runs/r/checkpoints")}) {
    const auto figures = json_of(precast({"eval", named, "--json"}));
    EXPECT_EQ(figures.at("val_loss"), summary().at("val_loss")) << named;
    EXPECT_EQ(figures.at("weights"), weights);
  }
  // The weights without averaging give a different result.
  const ChildResult plain = precast({"eval", "runs/r", "--model.weights=" + weights, "--json"});
  EXPECT_NE(json_of(plain).at("val_loss"), summary().at("val_loss"));
  EXPECT_THAT(plain.errors, Names("warning", weights, "ema", checkpoint.string()));
  EXPECT_THAT(precast({"eval", checkpoint.string()}).errors, testing::Not(Names("warning")));
  // The converted checkpoint has the weights of the run's final file.
  const ChildResult converted = precast({"convert", checkpoint.string(), "averages.safetensors"});
  ASSERT_EQ(converted.exit_code, 0) << converted.errors;
  const WeightsFile made = load_weights(work() / "averages.safetensors");
  const WeightsFile final_weights = load_weights(run() / "final_weights.safetensors");
  ASSERT_EQ(made.records().size(), final_weights.records().size());
  for (const TensorRecord& record : final_weights.records()) {
    const TensorRecord* const same = made.find(record.name);
    ASSERT_NE(same, nullptr) << record.name;
    EXPECT_TRUE(std::ranges::equal(same->bytes, record.bytes)) << record.name;
  }
}

TEST_F(PredictTest, AnUnfinishedRunIsEvaluatedWithItsNewestCheckpoint) {
  fs::copy(run(), work() / "runs/unfinished", fs::copy_options::recursive);
  for (const char* name : {"final_weights.safetensors", "final_weights.pt", "summary.json"})
    fs::remove(work() / "runs/unfinished" / name);
  const auto figures = json_of(precast({"eval", "runs/unfinished", "--json"}));
  EXPECT_EQ(figures.at("val_loss"), summary().at("val_loss"));
  EXPECT_EQ(fs::path(figures.at("weights").get<std::string>()).parent_path().filename(),
            newest_checkpoint().filename());
  const ChildResult text = precast({"eval", "runs/unfinished"});
  EXPECT_THAT(text.output, Names(newest_checkpoint().filename().string()));
  fs::remove_all(work() / "runs/unfinished/checkpoints");
  const ChildResult none = precast({"eval", "runs/unfinished"});
  EXPECT_EQ(none.exit_code, 4);
  EXPECT_THAT(none.errors, Names("runs/unfinished", "--model.weights"));
}

TEST_F(PredictTest, ADamagedNewerCheckpointDoesNotReplaceTheFinalWeights) {
  const fs::path copy = work() / "runs/continued";
  fs::copy(run(), copy, fs::copy_options::recursive);
  const auto add_checkpoint = [&](std::int64_t step, bool damaged) {
    CheckpointWriter writer(copy / "checkpoints", step, /*expected_bytes=*/0);
    for (const auto& file : fs::directory_iterator(newest_checkpoint())) {
      const std::string name = file.path().filename();
      if (name != "manifest.json") writer.add(name, test::read_bytes(file.path()));
    }
    const fs::path made = writer.commit();
    if (damaged) fs::resize_file(made / "model.safetensors", 100);
    return fs::relative(made, work()).string() + "/model.safetensors";
  };
  const auto used = [&] {
    return json_of(precast({"eval", "runs/continued", "--validation.lr_tta=0", "--json"}))
        .at("weights");
  };
  const auto finished = summary().at("steps").get<std::int64_t>();
  add_checkpoint(finished + 2, /*damaged=*/true);
  EXPECT_EQ(used(), "runs/continued/final_weights.safetensors");
  fs::remove_all(copy / "checkpoints" / newest_checkpoint().filename());
  EXPECT_EQ(used(), "runs/continued/final_weights.safetensors") << "no checkpoint is valid";
  const std::string newer = add_checkpoint(finished + 1, /*damaged=*/false);
  EXPECT_EQ(used(), newer);
}

TEST_F(PredictTest, OverridesApplyToARun) {
  ASSERT_EQ(precast({"select", "tree.beton", "part.beton", "--samples=0:4"}).exit_code, 0);
  const auto figures = json_of(precast(
      {"eval", "runs/r", "--data.val_dataset=part.beton", "--validation.lr_tta=0", "--json"}));
  EXPECT_EQ(figures.at("images"), 4);
  EXPECT_EQ(figures.at("dataset"), "part.beton");
}

TEST_F(PredictTest, RelativePathsOfARunAreThoseOfTheFolderWhereItWasStarted) {
  const fs::path elsewhere = *folder_ / "elsewhere";
  fs::create_directories(elsewhere);
  const auto figures = json_of(precast({"eval", "../work/runs/r", "--json"}, elsewhere));
  EXPECT_EQ(figures.at("val_loss"), summary().at("val_loss"));
  EXPECT_TRUE(fs::equivalent(figures.at("dataset").get<std::string>(), work() / "tree.beton"));
  // Without run.json, the folder where the run was started is derived from the run's path. The name
  // of a run may contain a slash.
  fs::create_directories(work() / "runs/nested");
  fs::copy(run(), work() / "runs/nested/r", fs::copy_options::recursive);
  fs::remove(work() / "runs/nested/r/run.json");
  auto params = nlohmann::json::parse(std::ifstream(run() / "params.json"));
  params["logging.run_id"] = "nested/r";
  std::ofstream(work() / "runs/nested/r/params.json") << params;
  const auto nested = json_of(precast({"eval", "../work/runs/nested/r", "--json"}, elsewhere));
  EXPECT_TRUE(fs::equivalent(nested.at("dataset").get<std::string>(), work() / "tree.beton"));
}

TEST_F(PredictTest, PhotosGiveTheLogitsOfTheSameImagesInADataset) {
  ASSERT_EQ(precast({"predict", "runs/r", "-o", "dataset.npy"}).exit_code, 0);
  std::vector<std::string> command = {"predict", "runs/r"};
  for (const std::string& photo : photos()) command.push_back(photo);
  command.insert(command.end(), {"-o", "photos.npy"});
  const ChildResult predicted = precast(command);
  ASSERT_EQ(predicted.exit_code, 0) << predicted.errors;
  EXPECT_EQ(read_npy(work() / "photos.npy").shape, (std::vector<std::int64_t>{8, 3}));
  EXPECT_EQ(array(work() / "photos.npy"), array(work() / "dataset.npy"));
}

TEST_F(PredictTest, AFolderOfImagesGivesClassesAndProbabilities) {
  const ChildResult predicted = precast({"predict", "runs/r", "tree", "-o", "classes.csv"});
  ASSERT_EQ(predicted.exit_code, 0) << predicted.errors;
  EXPECT_THAT(predicted.errors, Names("tree/cat-like/notes.txt", 1));
  const auto lines = lines_of(test::read_text(work() / "classes.csv"));
  ASSERT_EQ(lines.size(), 9U);
  EXPECT_EQ(lines[0], "name,class,probability");
  ASSERT_EQ(precast({"predict", "runs/r", "-o", "dataset.npy"}).exit_code, 0);
  const std::vector<float> sums = array(work() / "dataset.npy");
  std::map<std::string, std::string> rows;
  std::vector<std::string> order;
  for (std::size_t i = 1; i < lines.size(); ++i) {
    order.push_back(lines[i].substr(0, lines[i].find(',')));
    rows[order.back()] = lines[i].substr(order.back().size() + 1);
  }
  EXPECT_TRUE(std::ranges::is_sorted(order));
  const char* const classes[] = {"cat", "cat-like", "dog"};
  for (std::size_t i = 0; i < photos().size(); ++i) {
    // The logits of an image and its mirror image were added.
    double total = 0;
    for (std::size_t c = 0; c < 3; ++c) total += std::exp(sums[3 * i + c] / 2);
    const auto best = std::max_element(&sums[3 * i], &sums[3 * i] + 3) - &sums[3 * i];
    const std::string row = rows.at(photos()[i]);
    EXPECT_EQ(row.substr(0, row.find(',')), classes[best]);
    EXPECT_NEAR(std::stod(row.substr(row.find(',') + 1)),
                std::exp(sums[3 * i + static_cast<std::size_t>(best)] / 2) / total, 1e-5);
  }
}

TEST_F(PredictTest, TopGivesSeveralClassesAsCsvAndAsJsonLines) {
  const ChildResult csv = precast({"predict", "runs/r", "tree/dog/1.jpg", "--top=2"});
  ASSERT_EQ(csv.exit_code, 0) << csv.errors;
  const auto lines = lines_of(csv.output);
  ASSERT_EQ(lines.size(), 2U);
  EXPECT_EQ(lines[0], "name,class,probability,class_2,probability_2");
  const ChildResult json = precast(
      {"predict", "runs/r", "tree/dog", "--top=9", "--json", "--logits", "-o", "dogs.jsonl"});
  ASSERT_EQ(json.exit_code, 0) << json.errors;
  const auto objects = lines_of(json.output);
  ASSERT_EQ(objects.size(), 3U);
  const auto first = nlohmann::json::parse(objects[0]);
  EXPECT_EQ(first.at("name"), "tree/dog/1.jpg");
  ASSERT_EQ(first.at("predictions").size(), 3U);
  EXPECT_EQ(first.at("logits").size(), 3U);
  double sum = 0;
  for (const auto& prediction : first.at("predictions"))
    sum += prediction.at("probability").get<double>();
  EXPECT_NEAR(sum, 1, 1e-9);
  EXPECT_EQ(test::read_text(work() / "dogs.jsonl"), json.output);
}

TEST_F(PredictTest, ADatasetGivesLogitsUnlessClassesAreRequested) {
  const auto logits = lines_of(precast({"predict", "runs/r"}).output);
  ASSERT_EQ(logits.size(), 9U);
  EXPECT_EQ(logits[0], "sample,logit_0,logit_1,logit_2");
  const auto classes = lines_of(precast({"predict", "runs/r", "tree.beton", "--top=1"}).output);
  ASSERT_EQ(classes.size(), 9U);
  EXPECT_EQ(classes[0], "name,class,probability");
  EXPECT_THAT(classes[1], testing::StartsWith("0,"));
}

TEST_F(PredictTest, FilesThatAreNoImagesAreNamedAndSkipped) {
  const fs::path folder = work() / "mixed";
  test::put_file(folder / "a.jpg", test::read_bytes(work() / "tree/dog/1.jpg"));
  test::put_file(folder / "b.jpg", std::vector<std::byte>(100, std::byte{'x'}));
  test::put_file(folder / "c.jpg", {});
  test::put_file(folder / "d.bmp", std::vector<std::byte>(100, std::byte{0}));
  fs::create_symlink("nowhere.jpg", folder / "e.jpg");
  const ChildResult csv = precast({"predict", "runs/r", "mixed"});
  EXPECT_EQ(csv.exit_code, 3);
  EXPECT_THAT(csv.errors, Names("mixed/b.jpg", "mixed/c.jpg", "mixed/d.bmp", "mixed/e.jpg", 4, 5));
  EXPECT_EQ(lines_of(csv.output).size(), 2U);
  EXPECT_EQ(precast({"predict", "runs/r", "mixed", "-o", "mixed.npy"}).exit_code, 3);
  const std::vector<float> rows = array(work() / "mixed.npy");
  ASSERT_EQ(rows.size(), 15U);
  for (std::size_t i = 0; i < rows.size(); ++i) EXPECT_EQ(std::isnan(rows[i]), i >= 3) << i;
  // If no image can be read, the table still has its header.
  const ChildResult none = precast({"predict", "runs/r", "mixed/b.jpg"});
  EXPECT_EQ(none.exit_code, 3);
  EXPECT_THAT(lines_of(none.output), ElementsAre("name,class,probability"));
}

TEST_F(PredictTest, HiddenFilesOfAFolderAreIgnoredUnlessTheyAreNamed) {
  const std::vector<std::byte> image = test::read_bytes(work() / "tree/dog/1.jpg");
  // The named folder may be hidden; hidden files and folders in it are ignored.
  test::put_file(work() / ".own/a.jpg", image);
  test::put_file(work() / ".own/._a.jpg", std::vector<std::byte>(100, std::byte{'x'}));
  test::put_file(work() / ".own/.cache/b.jpg", image);
  for (const char* folder : {".own", ".own/", "./.own"}) {
    const ChildResult csv = precast({"predict", "runs/r", folder});
    ASSERT_EQ(csv.exit_code, 0) << csv.errors;
    EXPECT_THAT(csv.errors, Names(2, ".own/._a.jpg", ".own/.cache/b.jpg"));
    EXPECT_EQ(lines_of(csv.output).size(), 2U) << csv.output;
  }
  const ChildResult named = precast({"predict", "runs/r", ".own/.cache/b.jpg", ".own/._a.jpg"});
  EXPECT_EQ(named.exit_code, 3);
  EXPECT_EQ(lines_of(named.output).size(), 2U) << named.output;
  fs::remove(work() / ".own/a.jpg");
  EXPECT_EQ(precast({"predict", "runs/r", ".own"}).exit_code, 3);
}

TEST_F(PredictTest, ClassNamesComeFromTheWeightsWithoutADataset) {
  const ChildResult named =
      precast({"predict", "runs/r", "tree/dog/1.jpg", "--json", "--data.val_dataset=gone.beton"});
  ASSERT_EQ(named.exit_code, 0) << named.errors;
  EXPECT_THAT(named.errors, Names("gone.beton"));
  const auto first = nlohmann::json::parse(named.output).at("predictions")[0];
  EXPECT_TRUE(fs::is_directory(work() / "tree" / first.at("class").get<std::string>())) << first;
}

TEST_F(PredictTest, ASignalLeavesACompleteFileOrNone) {
  const fs::path out = *folder_ / "out";
  fs::create_directories(out);
  const auto predict = [&](const std::string& failpoint, const std::string& input) {
    return run_child({"/bin/sh", "-c", "cd \"$0\" && exec \"$@\"", work().string(), "/usr/bin/env",
                      "PRECAST_FAILPOINTS=" + failpoint, test::bin_dir() + "/precast", "predict",
                      "runs/r", input, "-o", (out / "p.csv").string()},
                     std::chrono::minutes(3));
  };
  for (const char* input : {"tree", "tree.beton"}) {
    for (const char* failpoint : {"loader.before_sample=term@1", "evaluator.before_batch=term@2"}) {
      const ChildResult stopped = predict(failpoint, input);
      EXPECT_EQ(stopped.exit_code, 128 + SIGTERM) << input << failpoint << stopped.errors;
      EXPECT_TRUE(fs::is_empty(out)) << input << failpoint;
    }
  }
  // The signal arrives after all predictions are in the file. (The input is a dataset: for a folder
  // of images, another file would reach the failpoint first.)
  const ChildResult done = predict("atomic_file.before_sync=term@1", "tree.beton");
  EXPECT_EQ(done.exit_code, 0) << done.errors;
  EXPECT_EQ(std::distance(fs::directory_iterator(out), {}), 1);
  EXPECT_TRUE(fs::exists(out / "p.csv"));
}

TEST_F(PredictTest, WrongInputsAreRefused) {
  const auto fails = [&](const std::vector<std::string>& args, int code,
                         const std::vector<std::string>& facts) {
    const ChildResult child = precast(args);
    EXPECT_EQ(child.exit_code, code) << args.back() << ": " << child.errors;
    EXPECT_THAT(child.errors, test::NamesMatcher(facts));
  };
  fs::create_directories(work() / "empty");
  fails({"eval", "empty"}, 2, {"empty", "params.json"});
  fails({"eval", "runs"}, 2, {"runs/r"});
  fails({"predict", "tree"}, 2, {"tree", "params.json"});
  fails({"predict", "runs/r", "empty"}, 3, {"empty"});
  fails({"predict", "runs/r", "none.jpg"}, 5, {"none.jpg"});
  fails({"predict", "runs/r", "tree.beton", "tree"}, 2, {"tree.beton", "tree"});
  fails({"predict", "runs/r", "tree", "--top=0"}, 2, {"--top", "0"});
  fails({"predict", "runs/r", "tree", "--top=2", "-o", "x.npy"}, 2, {"--top", ".npy"});
  fails({"predict", "runs/r", "tree", "--top=2", "--logits", "-o", "x.csv"}, 2, {"--logits"});
  fails({"predict", "runs/r", "tree", "--top=2", "--logits"}, 2, {"--logits", "--top"});
  fails({"predict", "runs/r", "tree.beton", "--top=2", "--logits"}, 2, {"--logits", "--top"});
  fails({"predict", "runs/r", "tree", "-o", "x.txt"}, 2, {"x.txt", ".jsonl"});
  fails({"predict", "runs/r", "tree", "-o", "none/x.csv"}, 5, {"none/x.csv"});
  // The error is found before the weights are loaded.
  fs::create_directories(work() / "folder.csv");
  fails({"predict", "runs/r", "tree", "-o", "folder.csv", "--model.weights=none.pt"}, 5,
        {"folder.csv"});
  fails({"predict", "empty.yaml", "tree"}, 5, {"empty.yaml"});
  std::vector<std::byte> bytes = test::read_bytes(work() / "tree.beton");
  std::fill_n(bytes.begin() + 8, 8, std::byte{});  // the number of samples
  test::write_bytes(work() / "no_samples.beton", bytes);
  fails({"predict", "runs/r", "no_samples.beton"}, 3, {"no_samples.beton"});
}

}  // namespace
}  // namespace precast::tools
