#include <fmt/core.h>
#include <png.h>

#include <csetjmp>
#include <cstring>
#include <new>
#include <vector>

#include "data/sources/exif.h"
#include "data/sources/image_file.h"
#include "framework/core/error.h"

namespace precast::data {
namespace {

/// What libpng reads from and where it leaves its complaint.
struct Input {
  std::span<const std::byte> left;
  char text[256] = {};
};

void read_bytes(png_structp png, png_bytep out, std::size_t size) {
  auto* input = static_cast<Input*>(png_get_io_ptr(png));
  if (size > input->left.size()) png_error(png, "the file ends before its image does");
  std::memcpy(out, input->left.data(), size);
  input->left = input->left.subspan(size);
}

void on_error(png_structp png, png_const_charp text) {
  auto* input = static_cast<Input*>(png_get_error_ptr(png));
  std::strncpy(input->text, text, sizeof input->text - 1);
  png_longjmp(png, 1);
}

void on_warning(png_structp /*png*/, png_const_charp /*text*/) {}

/// libpng's two structures.
struct Decoder {
  png_structp png = nullptr;
  png_infop info = nullptr;
  ~Decoder() { png_destroy_read_struct(&png, &info, nullptr); }
};

/// Reads the header and asks for 8-bit RGB. Both run under setjmp and hold no destructors. @{
bool read_header(const Decoder& decoder, Input& input, ImageFileFacts& facts) {
  if (setjmp(png_jmpbuf(decoder.png)) != 0) return false;
  png_set_read_fn(decoder.png, &input, read_bytes);
  png_read_info(decoder.png, decoder.info);
  const png_byte colors = png_get_color_type(decoder.png, decoder.info);
  facts.grey = (colors & PNG_COLOR_MASK_COLOR) == 0;
  facts.alpha = (colors & PNG_COLOR_MASK_ALPHA) != 0 ||
                png_get_valid(decoder.png, decoder.info, PNG_INFO_tRNS) != 0;
  facts.deep = png_get_bit_depth(decoder.png, decoder.info) == 16;
  png_set_strip_16(decoder.png);
  png_set_packing(decoder.png);
  png_set_expand(decoder.png);
  png_set_gray_to_rgb(decoder.png);
  png_set_strip_alpha(decoder.png);
  png_set_interlace_handling(decoder.png);
  png_read_update_info(decoder.png, decoder.info);
  return true;
}

bool read_pixels(const Decoder& decoder, png_bytepp rows) {
  if (setjmp(png_jmpbuf(decoder.png)) != 0) return false;
  png_read_image(decoder.png, rows);
  png_read_end(decoder.png, decoder.info);
  return true;
}
/// @}

/// The block may stand before the pixels or behind them.
int orientation_of(const Decoder& decoder) {
  png_uint_32 size = 0;
  png_bytep exif = nullptr;
  if (png_get_eXIf_1(decoder.png, decoder.info, &size, &exif) == 0) return 1;
  return exif_orientation(std::as_bytes(std::span(exif, size)));
}

[[noreturn]] void refuse(const Input& input) {
  throw DataError(
      fmt::format("image: expected a whole PNG file, got a damaged one ({})", input.text));
}

}  // namespace

ImageFileFacts decode_png_file(std::span<const std::byte> file, Image& out) {
  Input input{file};
  Decoder decoder;
  decoder.png = png_create_read_struct(PNG_LIBPNG_VER_STRING, &input, on_error, on_warning);
  if (decoder.png == nullptr) throw std::bad_alloc();
  decoder.info = png_create_info_struct(decoder.png);
  if (decoder.info == nullptr) throw std::bad_alloc();
  ImageFileFacts facts;
  facts.format = ImageFormat::png;
  if (!read_header(decoder, input, facts)) refuse(input);
  allocate_pixels(png_get_image_width(decoder.png, decoder.info),
                  png_get_image_height(decoder.png, decoder.info), out);
  const auto row_bytes = static_cast<std::size_t>(out.width) * 3;
  require(png_get_rowbytes(decoder.png, decoder.info) == row_bytes, "libpng gives 8-bit RGB");
  std::vector<png_bytep> rows(static_cast<std::size_t>(out.height));
  for (std::size_t y = 0; y < rows.size(); ++y) rows[y] = out.pixels.data() + y * row_bytes;
  if (!read_pixels(decoder, rows.data())) refuse(input);
  facts.orientation = orientation_of(decoder);
  return facts;
}

}  // namespace precast::data
