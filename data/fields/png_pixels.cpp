#include "data/fields/png_pixels.h"

#include <fmt/core.h>
#include <png.h>

#include <csetjmp>
#include <cstring>
#include <new>
#include <vector>

#include "data/image.h"
#include "framework/core/error.h"

namespace precast::data {
namespace {

struct Input {
  std::span<const std::byte> left;
  char complaint[256] = {};
};

void read_bytes(png_structp png, png_bytep out, std::size_t size) {
  auto* input = static_cast<Input*>(png_get_io_ptr(png));
  if (size > input->left.size()) png_error(png, "the file ends before its image does");
  std::memcpy(out, input->left.data(), size);
  input->left = input->left.subspan(size);
}

void on_error(png_structp png, png_const_charp text) {
  auto* input = static_cast<Input*>(png_get_error_ptr(png));
  std::strncpy(input->complaint, text, sizeof input->complaint - 1);
  png_longjmp(png, 1);
}

void on_warning(png_structp /*png*/, png_const_charp /*text*/) {}

struct Decoder {
  png_structp png = nullptr;
  png_infop info = nullptr;
  ~Decoder() { png_destroy_read_struct(&png, &info, nullptr); }
};

/// Both run under setjmp and hold no destructors. @{
bool read_header(const Decoder& decoder, Input& input) {
  if (setjmp(png_jmpbuf(decoder.png)) != 0) return false;
  png_set_read_fn(decoder.png, &input, read_bytes);
  png_read_info(decoder.png, decoder.info);
  png_set_expand(decoder.png);
  // PNG's 16 bits come with the high byte first.
  png_set_swap(decoder.png);
  png_set_interlace_handling(decoder.png);
  png_read_update_info(decoder.png, decoder.info);
  return true;
}

bool read_rows(const Decoder& decoder, png_bytepp rows) {
  if (setjmp(png_jmpbuf(decoder.png)) != 0) return false;
  png_read_image(decoder.png, rows);
  png_read_end(decoder.png, nullptr);
  return true;
}
/// @}

[[noreturn]] void refuse(const Input& input) {
  throw DataError(
      fmt::format("image: expected a whole PNG file, got a damaged one ({})", input.complaint));
}

}  // namespace

bool is_png(std::span<const std::byte> file) {
  constexpr unsigned char kSignature[] = {0x89, 'P', 'N', 'G', '\r', '\n', 0x1a, '\n'};
  return file.size() >= sizeof kSignature &&
         std::memcmp(file.data(), kSignature, sizeof kSignature) == 0;
}

ArrayInput png_pixels(std::span<const std::byte> file) {
  Input input{file};
  Decoder decoder;
  decoder.png = png_create_read_struct(PNG_LIBPNG_VER_STRING, &input, on_error, on_warning);
  if (decoder.png == nullptr) throw std::bad_alloc();
  decoder.info = png_create_info_struct(decoder.png);
  if (decoder.info == nullptr) throw std::bad_alloc();
  if (!read_header(decoder, input)) refuse(input);
  const std::uint64_t height = png_get_image_height(decoder.png, decoder.info);
  const std::uint64_t width = png_get_image_width(decoder.png, decoder.info);
  if (height * width > kMaxPixels) {
    throw DataError(
        fmt::format("image: expected at most {} pixels, got {} x {}", kMaxPixels, height, width));
  }
  const bool deep = png_get_bit_depth(decoder.png, decoder.info) == 16;
  const std::uint64_t channels = png_get_channels(decoder.png, decoder.info);
  const std::size_t row_bytes = png_get_rowbytes(decoder.png, decoder.info);
  require(row_bytes == width * channels * (deep ? 2 : 1), "libpng gives whole values");
  ArrayInput array{{deep ? "<u2" : "|u1", {height, width, channels}},
                   std::vector<std::byte>(height * row_bytes)};
  std::vector<png_bytep> rows(height);
  for (std::size_t y = 0; y < rows.size(); ++y)
    rows[y] = reinterpret_cast<png_bytep>(array.elements.data() + y * row_bytes);
  if (!read_rows(decoder, rows.data())) refuse(input);
  return array;
}

}  // namespace precast::data
