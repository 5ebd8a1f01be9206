#include "data/torch/value_range.h"

#include <gtest/gtest.h>

#include <cstddef>
#include <functional>
#include <memory>
#include <utility>
#include <vector>

#include "data/jobs/write_dataset.h"
#include "data/write/blob_fields.h"
#include "data/write/shaped_fields.h"
#include "tests/support/temporary_folder.h"

namespace precast::data {
namespace {

constexpr std::uint64_t kSamples = 6;

/// A mask of 2 x 2 px. All pixels are 1, except for one pixel of samples 1 (255), 2 (7) and 5 (8).
ArrayInput mask(std::uint64_t sample, const std::vector<std::uint64_t>& shape) {
  std::vector<std::byte> pixels(4, std::byte{1});
  if (sample == 1) pixels[3] = std::byte{255};
  if (sample == 2) pixels[2] = std::byte{7};
  if (sample == 5) pixels[0] = std::byte{8};
  return {.format = {"|u1", shape}, .elements = std::move(pixels)};
}

/// Checks find_out_of_range() on a file with one field of masks.
void expect_found(std::function<std::unique_ptr<Field>()> field,
                  const std::vector<std::uint64_t>& shape, const Output::Kind& kind) {
  const test::TemporaryFolder folder;
  (void)write_dataset(folder / "m.beton", {{"m", std::move(field)}}, kSamples,
                      [&](std::uint64_t i) {
                        return Sample{"x", {mask(i, shape)}};
                      },
                      {});
  const BetonReader reader(folder / "m.beton");
  const Output output{.name = "m", .field = 0, .type = ElementType::u8, .kind = kind};
  const auto found = [&](const ValueRange& range, std::uint64_t samples = kSamples) {
    return find_out_of_range(reader, output, range, samples)
        .value_or(ArrayNumber{.sample = kSamples});
  };
  EXPECT_EQ(found({.low = 0, .high = 7}).sample, 1U);
  EXPECT_EQ(found({.low = 0, .high = 7}).value, 255);
  EXPECT_EQ(found({.low = 0, .high = 6, .extra = 255}).sample, 2U);
  EXPECT_EQ(found({.low = 0, .high = 6, .extra = 255}).value, 7);
  EXPECT_EQ(found({.low = 2, .high = 255}).sample, 0U);
  EXPECT_EQ(found({.low = 0, .high = 8, .extra = 255}).sample, kSamples);
  EXPECT_EQ(found({.low = 0, .high = 7}, 3).sample, kSamples) << "reads samples 0, 2 and 4";
}

TEST(ValueRangeTest, ArraysAndMasksAreSearched) {
  const auto array = [] {
    return std::make_unique<ArrayField>(FieldType::ndarray, ArrayFormat{"|u1", {2, 2}});
  };
  expect_found(array, {2, 2}, ArrayOutput{.shape = {2, 2}, .bytes = 4});
  expect_found(array, {2, 2}, MaskOutput{.sides = {2, 2}});
  expect_found(
      [] {
        return std::make_unique<PixelsField>(
            FieldTag{.kind = FieldTag::Kind::pixels, .dtype = "|u1", .channels = 1});
      },
      {2, 2, 1}, MaskOutput{});
}

}  // namespace
}  // namespace precast::data
