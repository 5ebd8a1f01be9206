// Training on grey images as one channel, and on pixels fields.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <cstdlib>
#include <fstream>
#include <nlohmann/json.hpp>
#include <numeric>

#include "data/jobs/write_dataset.h"
#include "data/write/image_field.h"
#include "data/write/number_fields.h"
#include "data/write/shaped_fields.h"
#include "framework/core/archive/npy.h"
#include "framework/core/archive/weights_file.h"
#include "framework/core/archive/weights_spec.h"
#include "framework/core/file.h"
#include "framework/process/child_process.h"
#include "tests/data/sources/sample_images.h"
#include "tests/support/message_matchers.h"
#include "tests/support/paths.h"
#include "tests/support/temporary_folder.h"

namespace precast::tools {
namespace {

using test::Names;
using testing::ElementsAre;

constexpr std::uint64_t kSamples = 48;
constexpr std::int64_t kClasses = 3;

/// An image of 28 x 28 px, as in Fashion-MNIST, with a bright bar on a varying background. The
/// position of the bar is the class.
data::Image make_image(std::uint64_t i) {
  data::Image image(28, 28);
  const auto bar = static_cast<int>(i % kClasses) * 9;
  for (int y = 0; y < 28; ++y) {
    for (int x = 0; x < 28; ++x) {
      const bool bright = y >= bar && y < bar + 8 && x > 4;
      const int value =
          bright ? 230 : static_cast<int>((7 * i + static_cast<std::uint64_t>(x)) % 60);
      std::fill_n(image.pixels.begin() + 3 * (28 * y + x), 3, static_cast<std::uint8_t>(value));
    }
  }
  return image;
}

class ImageKindsTrainTest : public ::testing::Test {
 protected:
  ImageKindsTrainTest() {
    write("raw.beton", [] {
      return std::make_unique<data::ImageField>(
          data::ImageFieldOptions{.mode = data::ImageWriteMode::raw});
    });
    write("pixels.beton", [] {
      return std::make_unique<data::PixelsField>(
          data::FieldTag{.kind = data::FieldTag::Kind::pixels, .dtype = "|u1", .channels = 1});
    });
  }

  void write(const std::string& name, std::function<std::unique_ptr<data::Field>()> image) {
    (void)data::write_dataset(
        folder_ / name,
        {{"image", std::move(image)}, {"label", [] { return std::make_unique<data::IntField>(); }}},
        kSamples,
        [](std::uint64_t i) {
          return data::Sample{
              "x",
              {data::ImageInput{.file = test::png_file(make_image(i), 1), .pixels = {}},
               static_cast<std::int64_t>(i % kClasses)}};
        },
        {});
  }

  ChildResult precast(const std::string& command, const std::string& data, const std::string& run,
                      const std::vector<std::string>& more = {}) const {
    std::vector<std::string> all = {test::bin_dir() + "/precast",
                                    command,
                                    "--data.train_dataset=" + (folder_ / data).string(),
                                    "--data.val_dataset=" + (folder_ / data).string(),
                                    "--training.batch_size=8",
                                    "--resolution.min_res=32",
                                    "--resolution.max_res=32",
                                    "--validation.resolution=32",
                                    "--training.epochs=3",
                                    "--lr.lr=0.004",
                                    "--logging.every=1",
                                    "--logging.folder=" + (folder_ / "runs").string(),
                                    "--logging.run_id=" + run,
                                    "--training.device=cpu"};
    all.insert(all.end(), more.begin(), more.end());
    return run_child(all, std::chrono::minutes(5));
  }
  [[nodiscard]] std::string weights(const std::string& run) const {
    return folder_ / ("runs/" + run + "/final_weights.safetensors");
  }
  [[nodiscard]] std::vector<double> losses(const std::string& run) const {
    std::ifstream file(folder_ / ("runs/" + run + "/log"));
    std::vector<double> values;
    for (std::string line; std::getline(file, line);) {
      const auto entry = nlohmann::json::parse(line);
      if (entry.contains("loss")) values.push_back(entry.at("loss"));
    }
    return values;
  }

  test::TemporaryFolder folder_;
};

TEST_F(ImageKindsTrainTest, OneChannelTrainsAndIsPartOfTheWeights) {
  const ChildResult run =
      precast("train", "raw.beton", "grey",
              {"--model.in_channels=1", "--training.epochs=5", "--training.label_smoothing=0",
               "--pipeline.train=[whole_image]"});
  ASSERT_EQ(run.exit_code, 0) << run.errors;
  const std::vector<double> loss = losses("grey");
  ASSERT_EQ(loss.size(), 30U);
  const double first = std::accumulate(loss.begin(), loss.begin() + 6, 0.0);
  const double last = std::accumulate(loss.end() - 6, loss.end(), 0.0);
  EXPECT_LT(last, 0.7 * first);

  const WeightsFile file = load_weights(weights("grey"));
  EXPECT_THAT(file.find("conv1.weight")->shape, ElementsAre(64, 1, 7, 7));
  const auto spec = spec_of(file);
  ASSERT_TRUE(spec);
  EXPECT_EQ(spec->in_channels, 1);
  EXPECT_EQ(spec->mean.size(), 1U);

  const std::string given = "--model.weights=" + weights("grey");
  EXPECT_EQ(precast("eval", "raw.beton", "e", {given, "--model.in_channels=1"}).exit_code, 0);
  const ChildResult refused = precast("eval", "raw.beton", "e", {given});
  EXPECT_EQ(refused.exit_code, 4);
  EXPECT_THAT(refused.errors, Names("model.in_channels", "1", "3"));
}

TEST_F(ImageKindsTrainTest, PixelsFieldsTrainAsTheSameImages) {
  for (const char* channels : {"1", "3"}) {
    const std::string option = std::string("--model.in_channels=") + channels;
    for (const char* data : {"raw.beton", "pixels.beton"}) {
      const ChildResult run =
          precast("train", data, std::string(data) + channels, {option, "--training.epochs=1"});
      ASSERT_EQ(run.exit_code, 0) << run.errors;
    }
    EXPECT_EQ(losses(std::string("raw.beton") + channels),
              losses(std::string("pixels.beton") + channels));
  }
  EXPECT_NE(losses("raw.beton1"), losses("raw.beton3"));
}

TEST_F(ImageKindsTrainTest, PreviewShowsWhatTheModelGets) {
  write_file(folder_ / "r.yaml",
             "model: {in_channels: 1}\n"
             "pipeline: {train: [random_resized_crop, rotate: {degrees: [-20, 20]}]}\n");
  const auto preview = [&](const std::string& data, const std::string& out,
                           const std::vector<std::string>& more = {}) {
    std::vector<std::string> all = {
        test::bin_dir() + "/precast",           "preview", folder_ / data,
        "--output=" + (folder_ / out).string(), "--train", "--image-size=20"};
    all.insert(all.end(), more.begin(), more.end());
    const ChildResult run = run_child(all, std::chrono::minutes(1));
    EXPECT_EQ(run.exit_code, 0) << run.errors;
  };
  const std::vector<std::string> recipe = {"--config-file=" + (folder_ / "r.yaml").string()};
  preview("raw.beton", "a.npy", recipe);
  preview("pixels.beton", "b.npy", recipe);
  const NpyArray raw = read_npy(folder_ / "a.npy");
  EXPECT_THAT(raw.shape, ElementsAre(16, 20, 20, 1));
  EXPECT_EQ(read_npy(folder_ / "b.npy").bytes, raw.bytes);
  preview("pixels.beton", "c.npy");
  EXPECT_THAT(read_npy(folder_ / "c.npy").shape, ElementsAre(16, 20, 20, 3));
  preview("pixels.beton", "d.png", recipe);
  EXPECT_TRUE(std::filesystem::exists(folder_ / "d.png"));
}

TEST_F(ImageKindsTrainTest, WhatDoesNotFitIsReportedBeforeTheStart) {
  const auto refusal = [&](const std::string& pipeline, const std::string& channels) {
    const std::filesystem::path recipe = folder_ / "r.yaml";
    write_file(recipe, "model: {in_channels: " + channels + "}\npipeline:\n  train:\n" + pipeline);
    const ChildResult run =
        precast("train", "raw.beton", "refused", {recipe.string(), "--dry-run"});
    EXPECT_EQ(run.exit_code, 2) << pipeline;
    return run.errors;
  };
  EXPECT_THAT(
      refusal("    - center_crop\n    - normalize: {mean: [1, 2, 3], std: [1, 2, 3]}\n", "1"),
      Names("r.yaml:5:7", "pipeline.train[1]", "1 number"));
  EXPECT_THAT(refusal("    - center_crop\n    - channels: {count: 1}\n", "3"),
              Names("r.yaml:5:7", "pipeline.train[1]", "model.in_channels: 1"));
  EXPECT_THAT(refusal("    - center_crop\n", "2"),
              Names("r.yaml:1:", "model.in_channels", "1 or 3"));
}

}  // namespace
}  // namespace precast::tools
