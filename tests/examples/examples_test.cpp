#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>

#include "tests/support/paths.h"
#include "tests/support/program.h"
#include "tests/support/temporary_folder.h"

namespace precast::test {
namespace {

using testing::HasSubstr;

/// Runs commands like those of examples/README.md, in a folder outside the tree.
class ExamplesTest : public testing::Test {
 protected:
  /// Runs a shell command in the folder, with `precast` on its PATH.
  std::string shell(const std::string& line) {
    Program program({"/bin/sh", "-c",
                     fmt::format("cd {} && PATH={}:$PATH && {}", folder_.path().string(),
                                 test::bin_dir(), line)});
    const int code = program.wait();
    EXPECT_EQ(code, 0) << line << "\n" << program.out << program.err;
    return program.out + program.err;
  }

  /// Builds an example. @return the build folder.
  std::string build(const std::string& example) {
    shell(fmt::format("'{}' -S {}/examples/{} -B {} -Dprecast_DIR={} && '{}' --build {}",
                      PRECAST_CMAKE, test::source_dir(), example, example, test::build_dir(),
                      PRECAST_CMAKE, example));
    return (folder_ / example).string();
  }

  /// Writes images.beton: 48 synthetic images of 32 x 32 px in 10 classes.
  void write_images() {
    std::ofstream file(folder_ / "images.bin", std::ios::binary);
    for (int i = 0; i < 48; ++i) {
      file.put(static_cast<char>(i % 10));
      for (int v = 0; v < 3072; ++v) file.put(static_cast<char>(i * 31 + v * 7));
    }
    file.close();
    shell("precast write images.bin images.beton --source-kind cifar --image.mode raw");
  }

  /// Trains with `options` and a recipe that does not mention the plug-in: one epoch of three steps
  /// unless `options` has another number of epochs.
  std::string train(const std::string& options) {
    return shell(
        fmt::format("precast train {}/configs/fashion_mnist/rn18_16px.yaml --training.epochs=1 {} "
                    "--data.train_dataset=images.beton "
                    "--data.val_dataset=images.beton --training.batch_size=16 "
                    "--logging.folder=runs --resolution.min_res=32 --resolution.max_res=32",
                    test::source_dir(), options));
  }

  TemporaryFolder folder_;
};

#define NEEDS_TORCH \
  if (!PRECAST_WITH_TORCH) GTEST_SKIP() << "built without libtorch"

TEST_F(ExamplesTest, ConvNextTrainsThroughAnUnchangedRecipe) {
  NEEDS_TORCH;
  const std::string plugin = build("convnext") + "/convnext.so";
  write_images();
  EXPECT_THAT(train(fmt::format("--plugins=[{}] --model.arch=convnext --json", plugin)),
              HasSubstr("\"top_1\""));
}

TEST_F(ExamplesTest, VitTrainsThroughAnUnchangedRecipe) {
  NEEDS_TORCH;
  const std::string plugin = build("vit") + "/vit.so";
  write_images();
  EXPECT_THAT(train(fmt::format("--plugins=[{}] --model.arch=vit --model.params='{{patch: 4, "
                                "width: 48, depth: 2}}' --json",
                                plugin)),
              HasSubstr("\"top_1\""));
}

TEST_F(ExamplesTest, GradientNoiseResumesExactly) {
  NEEDS_TORCH;
  const std::string plugin = build("gradient_noise") + "/gradient_noise.so";
  write_images();
  const std::string options = fmt::format(
      "--plugins=[{}] --methods='[gradient_noise: {{eta: 0.02}}]' --logging.run_id=r "
      "--training.epochs=2 --checkpoint.keep_finished=2 --json",
      plugin);
  EXPECT_THAT(train(options), HasSubstr("\"top_1\""));
  shell("grep -l gradient_noise runs/r/checkpoints/*/state.json");
  // Restores the state of a run that was killed in the second epoch. If the resumed run drew the
  // random numbers of the first steps again, its final weights would differ.
  shell(
      "cd runs/r && mv final_weights.safetensors whole.safetensors && rm -r "
      "checkpoints/$(ls checkpoints | sort -V | tail -1)");
  EXPECT_THAT(train(options + " --checkpoint.resume=auto"), HasSubstr("\"top_1\""));
  shell("cmp runs/r/final_weights.safetensors runs/r/whole.safetensors");
}

TEST_F(ExamplesTest, SaltAndPepperShowsInAPreview) {
  const std::string plugin = build("salt_and_pepper") + "/salt_and_pepper.so";
  write_images();
  const std::string preview =
      "precast preview images.beton --image-size 32 --plugin {} --pipeline '[whole_image, "
      "salt_and_pepper: {{share: {}}}]' -o {}.npy";
  shell(fmt::format(fmt::runtime(preview), plugin, 0, "without"));
  shell(fmt::format(fmt::runtime(preview), plugin, 0.1, "with"));
  shell("! cmp -s without.npy with.npy");
}

TEST_F(ExamplesTest, IterateReadsBatchesWithoutLibtorch) {
  const std::string program = build("iterate") + "/iterate";
  write_images();
  const std::string printed = shell(program + " images.beton");
  EXPECT_EQ(occurrences(printed, "image [ 32 64 64 3 ]"), 1) << printed;
  EXPECT_EQ(occurrences(printed, "image [ 16 64 64 3 ]"), 1) << printed;
  EXPECT_THAT(shell("ldd " + program), testing::Not(HasSubstr("torch")));
}

TEST_F(ExamplesTest, AMovedLibtorchIsReportedWithTheFix) {
  NEEDS_TORCH;
  const std::string told = shell(
      fmt::format("! '{}' -S {}/examples/vit -B vit -Dprecast_DIR={} -Dprecast_TORCH_DIR=/nowhere",
                  PRECAST_CMAKE, test::source_dir(), test::build_dir()));
  EXPECT_THAT(told, HasSubstr("/nowhere"));
  EXPECT_THAT(told, HasSubstr("-Dprecast_TORCH_DIR=FOLDER"));
}

class SkeletonTest : public ExamplesTest, public testing::WithParamInterface<std::string> {};

TEST_P(SkeletonTest, BuildsAndPassesItsOwnTest) {
  NEEDS_TORCH;
  // The skeleton's code could also use the name `options` itself.
  shell(fmt::format("precast new plugin options --kind {}", GetParam()));
  shell(
      fmt::format("cd options && '{}' -S . -B build -DCMAKE_BUILD_TYPE=Release "
                  "-DCMAKE_CXX_FLAGS='-Wall -Wextra -Werror' && '{}' --build "
                  "build && ctest --test-dir build --output-on-failure",
                  PRECAST_CMAKE, PRECAST_CMAKE));
}

INSTANTIATE_TEST_SUITE_P(Kinds, SkeletonTest, testing::Values("model", "method", "transform"),
                         [](const auto& kind) { return kind.param; });

}  // namespace
}  // namespace precast::test
