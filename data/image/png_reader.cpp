#include "data/image/png_reader.h"

#include <fmt/core.h>
#include <png.h>

#include <csetjmp>
#include <cstring>
#include <new>
#include <vector>

#include "framework/core/error.h"

namespace precast::data {
namespace {

constexpr std::size_t kSignatureBytes = 8;
/// Size of a chunk's length, type and checksum.
constexpr std::size_t kChunkFrameBytes = 12;

/// NUL-terminated names of chunks that are skipped unread: they do not affect the pixels that
/// Pillow returns, and compressed chunks may expand to a thousand times their size. (An orientation
/// that ImageMagick wrote as text is ignored.)
constexpr std::size_t kNameBytes = 5;
constexpr png_byte kIgnored[] =
    "bKGD\0cHRM\0gAMA\0hIST\0iCCP\0iTXt\0oFFs\0pCAL\0pHYs\0"
    "sBIT\0sCAL\0sPLT\0sRGB\0tEXt\0tIME\0zTXt";
static_assert(sizeof kIgnored % kNameBytes == 0);

/// Whether the file contains every chunk up to IEND completely. This is checked first, because
/// libpng allocates memory for the length that a chunk claims.
bool chunks_are_complete(std::span<const std::byte> file) {
  if (file.size() < kSignatureBytes) return false;
  file = file.subspan(kSignatureBytes);
  while (file.size() >= kChunkFrameBytes) {
    const auto* head = reinterpret_cast<png_const_bytep>(file.data());
    if (std::memcmp(head + 4, "IEND", 4) == 0) return true;
    const std::size_t length = png_get_uint_32(head);
    if (length > file.size() - kChunkFrameBytes) return false;
    file = file.subspan(kChunkFrameBytes + length);
  }
  return false;
}

[[noreturn]] void throw_damaged(const char* error_text) {
  throw DataError(
      fmt::format("image: expected an intact PNG file, got a damaged one ({})", error_text));
}

}  // namespace

struct PngReader::Callbacks {
  static void read_bytes(png_structp png, png_bytep out, std::size_t size) {
    auto* input = static_cast<Input*>(png_get_io_ptr(png));
    if (size > input->left.size()) png_error(png, "the file is truncated");
    std::memcpy(out, input->left.data(), size);
    input->left = input->left.subspan(size);
  }
  static void on_error(png_structp png, png_const_charp text) {
    auto* input = static_cast<Input*>(png_get_error_ptr(png));
    std::strncpy(input->error_text, text, sizeof input->error_text - 1);
    png_longjmp(png, 1);
  }
  static void on_warning(png_structp /*png*/, png_const_charp /*text*/) {}
};

PngReader::PngReader(std::span<const std::byte> file, PngLayout layout) : input_{file} {
  if (!chunks_are_complete(file))
    throw_damaged("a chunk ends after the end of the file, or IEND is missing");
  png_ = png_create_read_struct(PNG_LIBPNG_VER_STRING, &input_, Callbacks::on_error,
                                Callbacks::on_warning);
  if (png_ == nullptr) throw std::bad_alloc();
  info_ = png_create_info_struct(png_);
  if (info_ != nullptr && read_header(layout)) return;
  const bool out_of_memory = info_ == nullptr;
  png_destroy_read_struct(&png_, &info_, nullptr);
  if (out_of_memory) throw std::bad_alloc();
  throw_damaged(input_.error_text);
}

PngReader::~PngReader() {
  png_destroy_read_struct(&png_, &info_, nullptr);
}

/// When libpng reports an error, it jumps back into these two functions with longjmp(), so they
/// contain no objects with destructors. @{
bool PngReader::read_header(PngLayout layout) {
  if (setjmp(png_jmpbuf(png_)) != 0) return false;
  png_set_read_fn(png_, &input_, Callbacks::read_bytes);
  png_set_keep_unknown_chunks(png_, PNG_HANDLE_CHUNK_NEVER, kIgnored, sizeof kIgnored / kNameBytes);
  png_read_info(png_, info_);
  const png_byte colors = png_get_color_type(png_, info_);
  stored_grey_ = (colors & PNG_COLOR_MASK_COLOR) == 0;
  stored_alpha_ =
      (colors & PNG_COLOR_MASK_ALPHA) != 0 || png_get_valid(png_, info_, PNG_INFO_tRNS) != 0;
  stored_sixteen_bit_ = png_get_bit_depth(png_, info_) == 16;
  png_set_expand(png_);
  if (layout == PngLayout::rgb8) {
    png_set_strip_16(png_);
    png_set_gray_to_rgb(png_);
    png_set_strip_alpha(png_);
  } else {
    png_set_swap(png_);  // PNG stores the high byte of 16 bits first.
  }
  png_set_interlace_handling(png_);
  png_read_update_info(png_, info_);
  return true;
}

bool PngReader::read_rows(unsigned char** rows) {
  if (setjmp(png_jmpbuf(png_)) != 0) return false;
  png_read_image(png_, rows);
  png_read_end(png_, info_);
  return true;
}
/// @}

std::uint64_t PngReader::height() const {
  return png_get_image_height(png_, info_);
}
std::uint64_t PngReader::width() const {
  return png_get_image_width(png_, info_);
}
std::uint64_t PngReader::channels() const {
  return png_get_channels(png_, info_);
}
bool PngReader::sixteen_bit() const {
  return png_get_bit_depth(png_, info_) == 16;
}
std::size_t PngReader::row_bytes() const {
  return png_get_rowbytes(png_, info_);
}

void PngReader::read(std::span<std::byte> pixels) {
  require(pixels.size() == height() * row_bytes(), "there is memory for each row of the PNG");
  std::vector<png_bytep> rows(height());
  for (std::size_t y = 0; y < rows.size(); ++y)
    rows[y] = reinterpret_cast<png_bytep>(pixels.data() + y * row_bytes());
  if (!read_rows(rows.data())) throw_damaged(input_.error_text);
}

std::span<const std::byte> PngReader::exif() const {
  png_uint_32 size = 0;
  png_bytep block = nullptr;
  if (png_get_eXIf_1(png_, info_, &size, &block) == 0) return {};
  return std::as_bytes(std::span(block, size));
}

}  // namespace precast::data
