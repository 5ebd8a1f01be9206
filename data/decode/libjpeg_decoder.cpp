#include "data/decode/libjpeg_decoder.h"

#include <fmt/core.h>

#include <algorithm>
#include <csetjmp>
#include <vector>

#include "data/decode/scratch.h"
#include "data/image/jpeg_limits.h"
#include "framework/core/error.h"

namespace precast::data {
namespace {

/// Fancy upsampling treats the border of a cropped scanline as the border of the image; one extra
/// pixel on each side inside the image keeps the region's pixels exact.
constexpr int kFancyMargin = 1;
/// libjpeg uses simple upsampling for a scanline of a few pixels; to avoid that for a narrow
/// region, more of the image is decoded.
constexpr int kMinColumns = 16;

/// Whether libjpeg smooths the image across block borders, as it does if scans are missing. A crop
/// would change the neighbours of the blocks at its border, and therefore their smoothing.
bool is_smoothed(const jpeg_decompress_struct& decompress) {
  if (decompress.progressive_mode == FALSE || decompress.coef_bits == nullptr) return false;
  for (int i = 0; i < decompress.num_components; ++i) {
    const auto& missing_bits = decompress.coef_bits[i];
    if (std::any_of(missing_bits, missing_bits + DCTSIZE2, [](int bits) { return bits != 0; })) {
      return true;
    }
  }
  return false;
}

/// Expands the values in the last third of `row` to RGB pixels, from left to right, so no value is
/// overwritten before it has been read.
void repeat_in_place(std::uint8_t* row, std::size_t width) {
  for (std::size_t x = 0; x < width; ++x) {
    const std::uint8_t value = row[2 * width + x];
    for (std::size_t c = 0; c < 3; ++c) row[3 * x + c] = value;
  }
}

}  // namespace

struct LibjpegDecoder::State {
  jpeg_decompress_struct decompress{};
  jpeg_error_mgr errors{};
  jpeg_progress_mgr progress = scan_limit<State>();
  std::jmp_buf jump{};
  char text[JMSG_LENGTH_MAX] = "";
  Scratch memory;
  std::vector<JSAMPROW> row_pointers;

  State() {
    decompress.err = jpeg_std_error(&errors);
    errors.error_exit = [](j_common_ptr info) {
      auto* state = static_cast<State*>(info->client_data);
      info->err->format_message(info, state->text);
      std::longjmp(state->jump, 1);
    };
    // A warning ends decoding immediately: a damaged JPEG of a few bytes can claim gigapixels,
    // which libjpeg would otherwise decode in spite of its warnings.
    errors.emit_message = [](j_common_ptr info, int level) {
      if (level < 0) info->err->error_exit(info);
    };
    decompress.client_data = this;
  }
  State(const State&) = delete;
  State& operator=(const State&) = delete;
  ~State() { jpeg_destroy_decompress(&decompress); }

  /// Reads the header. Returns false and sets `text` if libjpeg rejects it. No C++ object with a
  /// destructor may exist during longjmp(), so these functions contain only plain values.
  bool read_header(std::span<const std::byte> jpeg) {
    if (setjmp(jump) != 0) return false;
    // Creating a new decompressor for each image takes microseconds. A decompressor keeps tables
    // between images: a file without tables would be decoded with those of an earlier image, and
    // after a failure, the next intact image could be rejected.
    jpeg_destroy_decompress(&decompress);
    jpeg_create_decompress(&decompress);
    decompress.progress = &progress;
    jpeg_mem_src(&decompress, reinterpret_cast<const unsigned char*>(jpeg.data()), jpeg.size());
    jpeg_read_header(&decompress, TRUE);
    return true;
  }

  /// @throws DataError for a JPEG that would take far more time or memory than its size suggests.
  void check_cost() {
    const std::uint64_t image_pixels =
        std::uint64_t{decompress.image_width} * decompress.image_height;
    if (image_pixels > kMaxPixels) {
      throw DataError(
          fmt::format("expected a JPEG of at most {} pixels, got {}", kMaxPixels, image_pixels));
    }
    // In an arithmetic-coded file, missing bits are not an error, so a file without data can claim
    // any number of pixels.
    if (decompress.arith_code != FALSE) {
      throw DataError("expected a JPEG with Huffman coding, got arithmetic coding");
    }
    check_coefficients(decompress);
  }

  /// Starts decoding and limits it to the region's columns. Sets `first_column` to the column at
  /// which the decoded rows begin.
  bool start(const Rect& region, JpegDct dct, bool luma_only, int* first_column) {
    if (setjmp(jump) != 0) return false;
    decompress.out_color_space = luma_only ? JCS_GRAYSCALE : JCS_RGB;
    decompress.dct_method = dct == JpegDct::ifast ? JDCT_IFAST : JDCT_ISLOW;
    decompress.do_fancy_upsampling = TRUE;
    jpeg_start_decompress(&decompress);
    *first_column = 0;
    const int width = static_cast<int>(decompress.output_width);
    if (region.width < width && !is_smoothed(decompress)) {
      const int left = std::max(0, std::min(region.column - kFancyMargin, width - kMinColumns));
      const int right = std::min(
          width, std::max(region.column + region.width + kFancyMargin, left + kMinColumns));
      auto offset = static_cast<JDIMENSION>(left);
      auto length = static_cast<JDIMENSION>(right - left);
      jpeg_crop_scanline(&decompress, &offset, &length);
      *first_column = static_cast<int>(offset);
    }
    return true;
  }

  bool read_rows(const Rect& region) {
    if (setjmp(jump) != 0) return false;
    jpeg_skip_scanlines(&decompress, static_cast<JDIMENSION>(region.row));
    int read = 0;
    while (read < region.height) {
      read += static_cast<int>(jpeg_read_scanlines(&decompress, row_pointers.data() + read,
                                                   static_cast<JDIMENSION>(region.height - read)));
    }
    jpeg_abort_decompress(&decompress);
    return true;
  }

  ImageView decode(std::span<const std::byte> jpeg, int height, int width, const Rect& region,
                   JpegDct dct, bool luma_only) {
    if (!read_header(jpeg))
      throw DataError(fmt::format("expected a JPEG with a readable header, got: {}", text));
    const auto found_height = decompress.image_height;
    const auto found_width = decompress.image_width;
    if (found_height != static_cast<JDIMENSION>(height) ||
        found_width != static_cast<JDIMENSION>(width)) {
      throw DataError(fmt::format("expected a JPEG of {} x {} px (w x h), got {} x {}", width,
                                  height, found_width, found_height));
    }
    check_cost();
    int first_column = 0;
    if (!start(region, dct, luma_only, &first_column))
      throw DataError(fmt::format("expected an intact JPEG, got a damaged one ({})", text));

    const std::size_t stride = std::size_t{decompress.output_width} * 3;
    const auto rows = static_cast<std::size_t>(region.height);
    std::uint8_t* const pixels = memory.acquire(stride * rows);
    row_pointers.resize(rows);
    for (std::size_t y = 0; y < rows; ++y) row_pointers[y] = pixels + y * stride;
    // libjpeg writes a row of luma into the last third of that row's memory; repeat_in_place() then
    // expands it to RGB.
    if (luma_only) {
      for (JSAMPROW& row : row_pointers) row += stride / 3 * 2;
    }
    if (!read_rows(region))
      throw DataError(fmt::format("expected an intact JPEG, got a damaged one ({})", text));
    for (std::size_t y = 0; luma_only && y < rows; ++y)
      repeat_in_place(pixels + y * stride, stride / 3);
    return {pixels + std::size_t{3} * static_cast<std::size_t>(region.column - first_column),
            region.height, region.width, static_cast<std::ptrdiff_t>(stride)};
  }
};

LibjpegDecoder::LibjpegDecoder() : state_(std::make_unique<State>()) {}
LibjpegDecoder::LibjpegDecoder(LibjpegDecoder&&) noexcept = default;
LibjpegDecoder& LibjpegDecoder::operator=(LibjpegDecoder&&) noexcept = default;
LibjpegDecoder::~LibjpegDecoder() = default;

ImageView LibjpegDecoder::decode(std::span<const std::byte> jpeg, int height, int width,
                                 const Rect& region, JpegDct dct, bool luma_only) {
  return state_->decode(jpeg, height, width, region, dct, luma_only);
}

}  // namespace precast::data
