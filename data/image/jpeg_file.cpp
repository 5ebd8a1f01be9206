#include <fmt/core.h>

#include <cstdint>
#include <memory>
#include <vector>

#include "data/image/exif.h"
#include "data/image/image_file.h"
#include "data/image/jpeg_error.h"
#include "data/image/jpeg_limits.h"
#include "framework/core/error.h"

namespace precast::data {
namespace {

/// The largest possible size of a segment in a JPEG.
constexpr unsigned kMaxMarkerBytes = 0xFFFF;

/// The decompressor and everything else that must be released after libjpeg's longjmp().
struct Decoder {
  jpeg_decompress_struct state{};
  JpegErrors errors;
  jpeg_progress_mgr progress = scan_limit<JpegErrors>();

  ~Decoder() { jpeg_destroy_decompress(&state); }
};

/// a * b / 255, rounded (Pillow's MULDIV255).
unsigned multiply_255(unsigned a, unsigned b) {
  const unsigned product = a * b + 128;
  return ((product >> 8) + product) >> 8;
}

/// Converts a row of pixels. Adobe's programs store 255 - ink in CMYK JPEGs; like Pillow, this
/// function assumes this for every CMYK JPEG.
/// @param inverted [width][4]. @param rgb [width][3]
void cmyk_to_rgb(const unsigned char* inverted, std::size_t width, unsigned char* rgb) {
  for (std::size_t i = 0; i < width; ++i) {
    const unsigned light = inverted[4 * i + 3];
    for (std::size_t c = 0; c < 3; ++c) {
      const unsigned ink = multiply_255(255U - inverted[4 * i + c], light);
      rgb[3 * i + c] = static_cast<unsigned char>(light - ink);
    }
  }
}

/// Both functions call libjpeg after setjmp(), so they contain no objects with destructors. @return
/// false after a fatal error. @{
bool read_header(Decoder& decoder, std::span<const std::byte> file) {
  decoder.errors.install(reinterpret_cast<j_common_ptr>(&decoder.state));
  if (setjmp(decoder.errors.jump) != 0) return false;
  jpeg_create_decompress(&decoder.state);
  decoder.state.progress = &decoder.progress;
  jpeg_save_markers(&decoder.state, JPEG_APP0 + 1, kMaxMarkerBytes);
  jpeg_mem_src(&decoder.state, reinterpret_cast<const unsigned char*>(file.data()), file.size());
  jpeg_read_header(&decoder.state, TRUE);
  return true;
}

/// @param inks memory for a row of CMYK; null if the pixels are RGB.
bool read_pixels(Decoder& decoder, unsigned char* inks, Image& out) {
  if (setjmp(decoder.errors.jump) != 0) return false;
  jpeg_start_decompress(&decoder.state);
  const std::size_t row_bytes = std::size_t{3} * decoder.state.output_width;
  while (decoder.state.output_scanline < decoder.state.output_height) {
    unsigned char* pixels = out.pixels.data() + decoder.state.output_scanline * row_bytes;
    unsigned char* row = inks == nullptr ? pixels : inks;
    jpeg_read_scanlines(&decoder.state, &row, 1);
    if (inks != nullptr) cmyk_to_rgb(inks, decoder.state.output_width, pixels);
  }
  jpeg_finish_decompress(&decoder.state);
  return true;
}
/// @}

[[noreturn]] void throw_damaged(const Decoder& decoder) {
  throw DataError(fmt::format("image: expected an intact JPEG file, got a damaged one ({})",
                              decoder.errors.text));
}

int orientation_of(const jpeg_decompress_struct& state) {
  int orientation = 1;
  for (const jpeg_marker_struct* marker = state.marker_list; marker != nullptr && orientation == 1;
       marker = marker->next)
    orientation = exif_orientation(std::as_bytes(std::span(marker->data, marker->data_length)));
  return orientation;
}

/// Whether TurboJPEG, and therefore FFCV, supports the chroma subsampling: 1, 1/2 or 1/4 of the
/// luma samples horizontally (1/4 only without vertical subsampling), 1 or 1/2 vertically.
bool has_common_subsampling(const jpeg_decompress_struct& state) {
  const jpeg_component_info& luma = state.comp_info[0];
  for (int i = 1; i < state.num_components; ++i) {
    const jpeg_component_info& chroma = state.comp_info[i];
    if (chroma.h_samp_factor != 1 || chroma.v_samp_factor != 1) return false;
  }
  const int across = luma.h_samp_factor;
  const int down = luma.v_samp_factor;
  return (across <= 2 && down <= 2) || (across == 4 && down == 1);
}

ImageFileFacts facts_of(const jpeg_decompress_struct& state) {
  ImageFileFacts facts;
  facts.format = ImageFormat::jpeg;
  facts.orientation = orientation_of(state);
  facts.several_scans = jpeg_has_multiple_scans(const_cast<j_decompress_ptr>(&state)) != FALSE;
  facts.grey = state.jpeg_color_space == JCS_GRAYSCALE;
  facts.cmyk = state.jpeg_color_space == JCS_CMYK || state.jpeg_color_space == JCS_YCCK;
  facts.plain_jpeg =
      (facts.grey || (state.jpeg_color_space == JCS_YCbCr && has_common_subsampling(state))) &&
      state.arith_code == FALSE && state.data_precision == 8;
  return facts;
}

}  // namespace

JpegHeader read_jpeg_header(std::span<const std::byte> file) {
  const auto decoder = std::make_unique<Decoder>();
  if (!read_header(*decoder, file)) throw_damaged(*decoder);
  JpegHeader header{facts_of(decoder->state), static_cast<int>(decoder->state.image_height),
                    static_cast<int>(decoder->state.image_width)};
  header.facts.warnings = decoder->errors.warnings;
  return header;
}

ImageFileFacts decode_jpeg_file(std::span<const std::byte> file, Image& out) {
  const auto decoder = std::make_unique<Decoder>();
  if (!read_header(*decoder, file)) throw_damaged(*decoder);
  ImageFileFacts facts = facts_of(decoder->state);
  check_coefficients(decoder->state);
  allocate_pixels(decoder->state.image_width, decoder->state.image_height, out);
  decoder->state.out_color_space = facts.cmyk ? JCS_CMYK : JCS_RGB;
  decoder->state.dct_method = JDCT_ISLOW;
  std::vector<unsigned char> inks(facts.cmyk ? static_cast<std::size_t>(out.width) * 4 : 0);
  if (!read_pixels(*decoder, facts.cmyk ? inks.data() : nullptr, out)) throw_damaged(*decoder);
  facts.warnings = decoder->errors.warnings;
  if (decoder->errors.truncated) {
    throw DataError("image: expected a complete JPEG file, got a truncated one");
  }
  return facts;
}

}  // namespace precast::data
