#include "tests/data/sources/sample_images.h"

#include <archive.h>
#include <archive_entry.h>
#include <fmt/core.h>
#include <png.h>

#include <cstdio>
#include <cstdlib>
#include <stdexcept>

// clang-format off: jpeglib.h needs the includes above it.
#include <jpeglib.h>
// clang-format on

#include "tests/data/beton/golden_beton.h"

namespace precast::test {
namespace {

/// The image's values as [height, width, channels]; an alpha channel, or the fourth channel, is
/// 255.
std::vector<unsigned char> samples_of(const data::Image& image, int channels) {
  std::vector<unsigned char> samples;
  for (std::size_t p = 0; p < image.pixels.size() / 3; ++p) {
    for (int c = 0; c < channels; ++c) {
      const bool extra = channels == 2 ? c == 1 : c == 3;
      samples.push_back(
          extra ? 255 : image.pixels[3 * p + static_cast<std::size_t>(channels > 2 ? c : 0)]);
    }
  }
  return samples;
}

}  // namespace

data::Image gradient(int height, int width, int seed) {
  data::Image image(height, width);
  for (int y = 0; y < height; ++y) {
    for (int x = 0; x < width; ++x) {
      auto* pixel = image.pixels.data() + (y * width + x) * 3;
      pixel[0] = static_cast<std::uint8_t>(x * 255 / width);
      pixel[1] = static_cast<std::uint8_t>(y * 255 / height);
      pixel[2] = static_cast<std::uint8_t>((x + y + 37 * seed) % 256);
    }
  }
  return image;
}

std::vector<std::byte> encode_jpeg(std::vector<unsigned char> samples, int height, int width,
                                   int channels,
                                   const std::function<void(jpeg_compress_struct&)>& configure) {
  jpeg_compress_struct state{};
  jpeg_error_mgr errors{};
  state.err = jpeg_std_error(&errors);
  jpeg_create_compress(&state);
  unsigned char* buffer = nullptr;
  unsigned long size = 0;
  jpeg_mem_dest(&state, &buffer, &size);
  state.image_width = static_cast<JDIMENSION>(width);
  state.image_height = static_cast<JDIMENSION>(height);
  state.input_components = channels;
  state.in_color_space = channels == 1 ? JCS_GRAYSCALE : channels == 4 ? JCS_CMYK : JCS_RGB;
  jpeg_set_defaults(&state);
  configure(state);
  jpeg_start_compress(&state, TRUE);
  while (state.next_scanline < state.image_height) {
    unsigned char* row =
        samples.data() + state.next_scanline * static_cast<std::size_t>(width * channels);
    jpeg_write_scanlines(&state, &row, 1);
  }
  jpeg_finish_compress(&state);
  jpeg_destroy_compress(&state);
  const auto* bytes = reinterpret_cast<const std::byte*>(buffer);
  std::vector<std::byte> file(bytes, bytes + size);
  std::free(buffer);
  return file;
}

std::vector<std::byte> jpeg_file(const data::Image& image, JpegKind kind) {
  static constexpr jpeg_scan_info kScans[] = {
      {1, {0}, 0, 63, 0, 0}, {1, {1}, 0, 63, 0, 0}, {1, {2}, 0, 63, 0, 0}};
  const int channels = kind == JpegKind::grey ? 1 : kind == JpegKind::cmyk ? 4 : 3;
  return encode_jpeg(samples_of(image, channels), image.height, image.width, channels,
                     [kind](jpeg_compress_struct& state) {
                       jpeg_set_quality(&state, 95, TRUE);
                       if (kind == JpegKind::progressive) jpeg_simple_progression(&state);
                       if (kind == JpegKind::three_scans) {
                         state.scan_info = kScans;
                         state.num_scans = 3;
                       }
                     });
}

std::vector<std::byte> png_file(const data::Image& image, int channels) {
  const std::vector<unsigned char> samples = samples_of(image, channels);
  png_image png{};
  png.version = PNG_IMAGE_VERSION;
  png.width = static_cast<png_uint_32>(image.width);
  png.height = static_cast<png_uint_32>(image.height);
  constexpr png_uint_32 kFormats[] = {PNG_FORMAT_GRAY, PNG_FORMAT_GA, PNG_FORMAT_RGB,
                                      PNG_FORMAT_RGBA};
  png.format = kFormats[channels - 1];
  png_alloc_size_t size = 0;
  png_image_write_to_memory(&png, nullptr, &size, 0, samples.data(), 0, nullptr);
  std::vector<std::byte> file(size);
  if (png_image_write_to_memory(&png, file.data(), &size, 0, samples.data(), 0, nullptr) == 0) {
    throw std::runtime_error(png.message);
  }
  file.resize(size);
  return file;
}

void put_file(const std::filesystem::path& path, const std::vector<std::byte>& bytes) {
  std::filesystem::create_directories(path.parent_path());
  write_bytes(path, bytes);
}

void make_class_tree(const std::filesystem::path& root) {
  put_file(root / "cat" / "b.jpg", jpeg_file(gradient(40, 60, 1)));
  put_file(root / "cat" / "a.JPEG", jpeg_file(gradient(30, 20, 2)));
  put_file(root / "cat" / "old" / "0.jpg", jpeg_file(gradient(33, 47, 3)));
  put_file(root / "cat" / "c.png", png_file(gradient(25, 35, 4)));
  put_file(root / "cat-like" / "x.jpg", jpeg_file(gradient(64, 64, 5), JpegKind::grey));
  put_file(root / "cat-like" / "notes.txt", {std::byte{'n'}});
  put_file(root / "dog" / "1.jpg", jpeg_file(gradient(90, 70, 6)));
  put_file(root / "dog" / "10.jpg", jpeg_file(gradient(50, 51, 7), JpegKind::progressive));
  put_file(root / "dog" / "2.jpg", jpeg_file(gradient(20, 21, 8), JpegKind::cmyk));
  // A PNG file named .jpg: the content decides.
  put_file(root / "dog" / "3.jpg", png_file(gradient(22, 23, 9), 4));
}

void make_tar(const std::filesystem::path& tar, const std::filesystem::path& root,
              const std::string& prefix) {
  archive* writer = archive_write_new();
  archive_write_set_format_pax_restricted(writer);
  archive_write_open_filename(writer, tar.c_str());
  for (const auto& file : std::filesystem::recursive_directory_iterator(root)) {
    archive_entry* entry = archive_entry_new();
    const std::string name = prefix + file.path().lexically_relative(root).string();
    archive_entry_set_pathname(entry, name.c_str());
    archive_entry_set_perm(entry, 0644);
    archive_entry_set_filetype(entry, file.is_directory() ? AE_IFDIR : AE_IFREG);
    const std::vector<std::byte> bytes =
        file.is_directory() ? std::vector<std::byte>() : read_bytes(file.path());
    archive_entry_set_size(entry, static_cast<la_int64_t>(bytes.size()));
    archive_write_header(writer, entry);
    archive_write_data(writer, bytes.data(), bytes.size());
    archive_entry_free(entry);
  }
  if (archive_write_close(writer) != ARCHIVE_OK) throw std::runtime_error("cannot write the tar");
  archive_write_free(writer);
}

}  // namespace precast::test
