// Writes PNG and WebP images from every source that reads image files, in three modes.
#include <archive.h>
#include <archive_entry.h>
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <png.h>
#include <webp/decode.h>
#include <webp/encode.h>

#include <cstdlib>
#include <filesystem>
#include <string>
#include <vector>

#include "data/beton/reader.h"
#include "data/jobs/field_plans.h"
#include "data/jobs/write_dataset.h"
#include "data/sources/register.h"
#include "data/write/register.h"
#include "framework/core/file.h"
#include "tests/data/beton/golden_beton.h"
#include "tests/data/sources/opened.h"
#include "tests/data/sources/sample_images.h"
#include "tests/support/paths.h"
#include "tests/support/temporary_folder.h"

namespace precast::data {
namespace {

/// The pixels that libpng itself decodes from a file, as 8-bit RGB.
std::vector<std::uint8_t> by_libpng(const std::vector<std::byte>& file) {
  png_image png{};
  png.version = PNG_IMAGE_VERSION;
  EXPECT_NE(png_image_begin_read_from_memory(&png, file.data(), file.size()), 0);
  const bool alpha = (png.format & PNG_FORMAT_FLAG_ALPHA) != 0;
  png.format = alpha ? PNG_FORMAT_RGBA : PNG_FORMAT_RGB;
  std::vector<std::uint8_t> read(PNG_IMAGE_SIZE(png)), pixels;
  EXPECT_NE(png_image_finish_read(&png, nullptr, read.data(), 0, nullptr), 0);
  const std::size_t step = alpha ? 4 : 3;
  for (std::size_t at = 0; at < read.size(); at += step)
    pixels.insert(pixels.end(), read.begin() + static_cast<std::ptrdiff_t>(at),
                  read.begin() + static_cast<std::ptrdiff_t>(at + 3));
  return pixels;
}

std::vector<std::byte> webp_file(const Image& image) {
  std::uint8_t* out = nullptr;
  const std::size_t size =
      WebPEncodeLosslessRGB(image.pixels.data(), image.width, image.height, 3 * image.width, &out);
  const auto* bytes = reinterpret_cast<const std::byte*>(out);
  std::vector<std::byte> file(bytes, bytes + size);
  WebPFree(out);
  return file;
}

std::vector<std::uint8_t> by_libwebp(const std::vector<std::byte>& file) {
  int width = 0, height = 0;
  std::uint8_t* const out = WebPDecodeRGB(reinterpret_cast<const std::uint8_t*>(file.data()),
                                          file.size(), &width, &height);
  std::vector<std::uint8_t> pixels(out, out + std::ptrdiff_t{3} * width * height);
  WebPFree(out);
  return pixels;
}

using Member = std::pair<std::string, std::vector<std::byte>>;

void write_shard(const std::filesystem::path& path, const std::vector<Member>& members) {
  archive* writer = archive_write_new();
  archive_write_set_format_ustar(writer);
  ASSERT_EQ(archive_write_open_filename(writer, path.c_str()), ARCHIVE_OK);
  for (const auto& [name, content] : members) {
    archive_entry* entry = archive_entry_new();
    archive_entry_set_pathname(entry, name.c_str());
    archive_entry_set_size(entry, static_cast<la_int64_t>(content.size()));
    archive_entry_set_filetype(entry, AE_IFREG);
    archive_entry_set_perm(entry, 0644);
    ASSERT_EQ(archive_write_header(writer, entry), ARCHIVE_OK);
    archive_write_data(writer, content.data(), content.size());
    archive_entry_free(entry);
  }
  archive_write_close(writer);
  archive_write_free(writer);
}

class ImageFormatsTest : public ::testing::Test {
 protected:
  static constexpr std::uint64_t kImages = 6;

  ImageFormatsTest() {
    const auto add = [&](const std::string& name, const std::vector<std::byte>& file, bool webp) {
      test::put_file(tree_ / "all" / name, file);
      names_.push_back(name);
      expected_.push_back(webp ? by_libwebp(file) : by_libpng(file));
    };
    for (const int channels : {1, 2, 3, 4}) {
      add(fmt::format("{}.png", channels),
          test::png_file(test::gradient(20 + channels, 33, channels), channels), false);
    }
    const std::string golden = test::golden_dir() + "/images/files/";
    add("5.png", test::read_bytes(golden + "palette_4.png"), false);
    add("6.webp", webp_file(test::gradient(17, 40, 9)), true);
    // The same images in the formats of the other sources.
    test::make_tar(folder_ / "tree.tar", tree_, "");
    std::vector<Member> members;
    std::string csv = "image,label\n", json;
    for (const std::string& name : names_) {
      csv += "tree/all/" + name + ",0\n";
      json += fmt::format("{{\"image\": \"tree/all/{}\", \"label\": 0}}\n", name);
      const std::string key = "0" + name.substr(0, 1);
      members.emplace_back(key + name.substr(1), test::read_bytes(tree_ / "all" / name));
      members.emplace_back(key + ".cls", std::vector<std::byte>{std::byte{'0'}});
    }
    write_file(folder_ / "list.csv", csv);
    write_file(folder_ / "list.jsonl", json);
    write_shard(folder_ / "shard.tar", members);
  }

  /// Writes a dataset from a source, and calls read(sample, record) for each image of the dataset.
  template <typename Read>
  void write_and_read(const Source& source, const std::string& mode, Read read) {
    const FieldRegistry registry = make_fields();
    FieldOptions options;
    options.parts["image"] = test::option("mode", mode);
    if (mode == "smart") {
      ConfigNode threshold = test::option("smart_threshold", "2200");
      options.parts["image"].entries.push_back(threshold.entries[0]);
    }
    const auto plans = plan_fields(source.fields(), source, 0, options, registry);
    (void)write_dataset(folder_ / "out.beton", plans, source.size(),
                        [&](std::uint64_t i) { return source.sample(i); }, {});
    const BetonReader reader(folder_ / "out.beton");
    ASSERT_EQ(reader.size(), kImages);
    const std::size_t field = reader.first_field(FieldType::image);
    for (std::uint64_t i = 0; i < kImages; ++i) read(i, reader.image(i, field));
  }

  void expect_all(const std::string& name, const std::string& kind) {
    const auto source = open_source(folder_ / name, kind);
    write_and_read(*source, "raw", [&](std::uint64_t i, const ImageRecord& record) {
      ASSERT_EQ(record.mode, ImageMode::raw);
      const auto* pixels = reinterpret_cast<const std::uint8_t*>(record.bytes.data());
      EXPECT_EQ(std::vector<std::uint8_t>(pixels, pixels + record.bytes.size()), expected_[i])
          << name << " " << i;
    });
    write_and_read(*source, "jpg", [&](std::uint64_t i, const ImageRecord& record) {
      EXPECT_EQ(record.mode, ImageMode::jpg) << name << " " << i;
    });
    write_and_read(*source, "smart", [&](std::uint64_t i, const ImageRecord& record) {
      EXPECT_EQ(record.mode == ImageMode::jpg, expected_[i].size() > 2200) << name << " " << i;
    });
  }

  test::TemporaryFolder folder_;
  const std::filesystem::path tree_ = folder_ / "tree";
  std::vector<std::string> names_;
  std::vector<std::vector<std::uint8_t>> expected_;
};

TEST_F(ImageFormatsTest, EverySourceKeepsLosslessPixelsInRawMode) {
  expect_all("tree", "folder");
  expect_all("tree.tar", "tar");
  expect_all("shard.tar", "webdataset");
  expect_all("list.csv", "table");
  expect_all("list.jsonl", "table");
}

}  // namespace
}  // namespace precast::data
