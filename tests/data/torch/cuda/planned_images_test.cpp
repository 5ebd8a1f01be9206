// Built twice: for the host (kernels_test) and for a GPU (kernels_gpu_test).
#include "data/torch/cuda/planned_images.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>
#include <optional>

#include "data/beton/reader.h"
#include "data/loader/image_plan.h"
#include "data/loader/image_planner.h"
#include "data/loader/loader.h"
#include "data/loader/outputs.h"
#include "framework/core/error.h"
#include "tests/data/beton/golden_beton.h"
#include "tests/data/beton/synthetic_beton.h"
#include "tests/data/transforms/parsed_pipeline.h"
#include "tests/support/kernel_device.h"
#include "tests/support/message_matchers.h"
#include "tests/support/temporary_folder.h"

namespace precast::data {
namespace {

using test::Names;
using test::parsed_pipeline;
using test::SyntheticBeton;
using testing::ThrowsMessage;

std::string with_filter(const std::string& crop, const std::string& filter) {
  return "[" + crop + ", resize: {filter: " + filter + "}, horizontal_flip]";
}

/// The stored images of a file's field `image`, on the device.
class Pool {
 public:
  explicit Pool(const BetonReader& reader) {
    std::vector<std::uint8_t> pixels;
    std::vector<std::uint64_t> offsets;
    std::vector<std::int32_t> widths;
    std::vector<std::uint8_t> converted;
    for (std::uint64_t i = 0; i < reader.size(); ++i) {
      const StoredPixels image = mapped_pixels(reader, i, 0).value();
      const ImageView rgb = rgb_of(image, {0, 0, image.height, image.width}, converted);
      offsets.push_back(pixels.size());
      widths.push_back(image.width);
      widest_ = std::max(widest_, image.width);
      pixels.insert(pixels.end(), rgb.pixels, rgb.pixels + rgb.stride * rgb.height);
    }
    pixels_.emplace(pixels);
    offsets_.emplace(offsets);
    widths_.emplace(widths);
  }
  [[nodiscard]] StoredImages stored() const {
    return {pixels_->data(), offsets_->data(), widths_->data(), widest_};
  }

 private:
  std::optional<test::DeviceArray<std::uint8_t>> pixels_;
  std::optional<test::DeviceArray<std::uint64_t>> offsets_;
  std::optional<test::DeviceArray<std::int32_t>> widths_;
  int widest_ = 0;
};

class PlannedImagesKernelTest : public test::DeviceTest {
 protected:
  static LoaderOptions options_of(const BetonReader& reader, bool planned) {
    LoaderOptions options;
    options.batch_size = 6;
    options.workers = 2;
    options.seed = 5;
    options.order = make_order(reader, {.name = "random"});
    options.normalize = !planned;
    options.plan_images = planned;
    return options;
  }

  /// Expects that the kernel's images are bitwise identical to those of the loader.
  void compare(const SyntheticBeton& made, const std::string& pipeline_text, std::int64_t size_px) {
    SCOPED_TRACE(pipeline_text + ", " + std::to_string(size_px) + " px");
    test::write_made_beton(folder_ / "x.beton", made);
    const BetonReader reader(folder_ / "x.beton");
    const Pool pool(reader);
    const Pipeline pipeline = parsed_pipeline(pipeline_text);
    Loader expected(reader, pipeline, options_of(reader, /*planned=*/false));
    Loader planned(reader, pipeline, options_of(reader, /*planned=*/true));
    expected.begin_epoch({.epoch = 2, .image_size_px = size_px});
    planned.begin_epoch({.epoch = 2, .image_size_px = size_px});
    int batches = 0;
    while (const auto batch = expected.next()) {
      const auto plans = planned.next();
      ASSERT_TRUE(plans);
      ++batches;
      EXPECT_EQ(plans->sample_ids, batch->sample_ids);
      EXPECT_EQ(std::memcmp(plans->fields[1].data, batch->fields[1].data, batch->fields[1].bytes()),
                0);
      check_images(pool, plans->fields[0], batch->fields[0], static_cast<int>(size_px));
    }
    EXPECT_FALSE(planned.next());
    EXPECT_GT(batches, 1);
  }

  static void check_images(const Pool& pool, const HostTensor& plans, const HostTensor& images,
                           int side) {
    const test::DeviceArray<std::byte> on_device(std::span(plans.data, plans.bytes()));
    const std::span<const float> expected = images.values<float>();
    ASSERT_EQ(plans.shape.size(), 2U);
    const PlannedImages call{.plans = on_device.data(),
                             .plan_bytes = static_cast<std::size_t>(plans.shape[1]),
                             .count = static_cast<int>(plans.shape[0]),
                             .side = side,
                             // The six images of a batch need two launches.
                             .per_launch = 4};
    NormalizeConstants constants{};
    for (std::size_t c = 0; c < 3; ++c) {
      constants.mean[c] = static_cast<float>(NormalizeOptions().mean[c]);
      constants.std[c] = static_cast<float>(NormalizeOptions().std[c]);
    }
    test::in_several_orders([&] {
      const test::DeviceArray<float> out(expected.size());
      make_planned_images(pool.stored(), call, constants, PixelType::f32, out.data(), nullptr);
      const std::vector<float> found = out.values();
      for (std::size_t i = 0; i < found.size(); ++i) {
        ASSERT_EQ(std::bit_cast<std::uint32_t>(found[i]), std::bit_cast<std::uint32_t>(expected[i]))
            << "value " << i;
      }
    });
  }

  test::TemporaryFolder folder_;
};

/// Images that are 16 to 30 px wide and 20 to 48 px high.
const SyntheticBeton kMixed{.samples = 14, .width = 16, .height = 20, .growth = 7};

TEST_F(PlannedImagesKernelTest, MakesTheImagesOfTheLoaderForAnySizeAndFilter) {
  for (const char* filter : {"area", "bilinear", "antialias"}) {
    for (const std::int64_t size_px : {4, 9, 16, 33}) {
      compare(kMixed, with_filter("random_resized_crop", filter), size_px);
      compare(kMixed, with_filter("center_crop: {ratio: 0.9}", filter), size_px);
    }
  }
}

TEST_F(PlannedImagesKernelTest, MakesImagesFromOnePixel) {
  for (const char* filter : {"area", "bilinear", "antialias"}) {
    const SyntheticBeton narrow{.samples = 8, .width = 1, .height = 1, .growth = 2};
    compare(narrow, with_filter("whole_image", filter), 7);
    compare(narrow, with_filter("whole_image", filter), 1);
  }
}

TEST_F(PlannedImagesKernelTest, MovesAndFillsAsTheTransformsDo) {
  const SyntheticBeton small{.samples = 24, .width = 12, .height = 12};
  for (const char* steps :
       {"horizontal_flip, translate: {padding: 3, fill: [10, 20, 30]}, cutout: {crop_size: 5}",
        "pad_crop: {padding: 3, mode: edge}, random_erasing: {probability: 0.7, fill: [1, 2, 3]}",
        "pad_crop: {padding: 4, mode: reflect}, vertical_flip, horizontal_flip",
        "pad_crop: {padding: 4, mode: symmetric}, cutout: {crop_size: 4}, translate: {padding: 6}, "
        "cutout: {crop_size: 2, fill: [9, 9, 9]}"}) {
    compare(small, std::string("[whole_image, ") + steps + "]", 12);
    compare(small, std::string("[random_resized_crop, ") + steps + "]", 15);
  }
}

TEST_F(PlannedImagesKernelTest, RefusesWhatOnlyTheLoaderCanDo) {
  test::write_made_beton(folder_ / "x.beton", {.samples = 4});
  const BetonReader reader(folder_ / "x.beton");
  const auto error_of = [&](const BetonReader& file, const std::string& pipeline) {
    return [&file, pipeline] {
      static_cast<void>(
          outputs_of_loader(file, parsed_pipeline(pipeline), options_of(file, /*planned=*/true)));
    };
  };
  EXPECT_THAT(error_of(reader, "[random_resized_crop, color_jitter: {brightness: 0.4}]"),
              ThrowsMessage<ConfigError>(Names("r.yaml:1", "pipeline.train[1]", "data.in_memory")));
  EXPECT_THAT(
      error_of(reader, "[whole_image, random_erasing: {noise_std: 5}, translate: {padding: 1}]"),
      ThrowsMessage<ConfigError>(Names("pipeline.train[1]")));
  EXPECT_THAT(error_of(reader,
                       "[whole_image, translate: {padding: 1}, translate: {padding: 1}, translate: "
                       "{padding: 1}, translate: {padding: 1}, translate: {padding: 1}]"),
              ThrowsMessage<ConfigError>(Names("pipeline.train[5]", "4", "5")));
  EXPECT_THAT(error_of(reader, "[whole_image, convert: {type: f32}]"),
              ThrowsMessage<ConfigError>(Names("convert", "data.in_memory")));
  EXPECT_THAT(error_of(reader, "[whole_image, channels: {count: 1}]"),
              ThrowsMessage<ConfigError>(Names("data.in_memory", "channels")));
  test::write_bytes(folder_ / "j.beton", test::golden_beton("img_jpg_w3"));
  const BetonReader jpegs(folder_ / "j.beton");
  // All problems are reported together.
  EXPECT_THAT(error_of(jpegs, "[whole_image, color_jitter: {brightness: 0.4}]"),
              ThrowsMessage<ConfigError>(
                  Names("data.in_memory", "j.beton", "sample 0", "raw", "pipeline.train[1]")));
}

TEST_F(PlannedImagesKernelTest, RefusesTransformsThatAreTooLargeForTheSize) {
  test::write_made_beton(folder_ / "x.beton", {.samples = 2, .width = 24, .height = 24});
  const BetonReader reader(folder_ / "x.beton");
  for (const char* step : {"pad_crop: {padding: 30, mode: reflect}", "cutout: {crop_size: 30}"}) {
    Loader loader(reader, parsed_pipeline(std::string("[whole_image, ") + step + "]"),
                  options_of(reader, /*planned=*/true));
    EXPECT_THAT([&] { loader.begin_epoch({.image_size_px = 24}); }, testing::Throws<ConfigError>())
        << step;
    EXPECT_NO_THROW(loader.begin_epoch({.image_size_px = 32})) << step;
  }
}

TEST_F(PlannedImagesKernelTest, RefusesImagesThatAreShrunkTooMuch) {
  test::write_made_beton(folder_ / "x.beton", {.samples = 2, .width = 70, .height = 4});
  const BetonReader reader(folder_ / "x.beton");
  Loader loader(reader, parsed_pipeline("[whole_image]"), options_of(reader, /*planned=*/true));
  EXPECT_THAT([&] { loader.begin_epoch({.image_size_px = 2}); },
              ThrowsMessage<ConfigError>(Names("data.in_memory", "62 px", "70 px", "2 px")));
  EXPECT_NO_THROW(loader.begin_epoch({.image_size_px = 3}));
}

}  // namespace
}  // namespace precast::data
