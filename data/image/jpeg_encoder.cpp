#include "data/image/jpeg_encoder.h"

#include <fmt/core.h>

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <new>

#include "data/image/jpeg_error.h"
#include "framework/core/error.h"

namespace precast::data {

struct JpegEncoder::Codec {
  jpeg_compress_struct state{};
  JpegErrors errors;
  std::unique_ptr<unsigned char[]> buffer;
  unsigned long capacity = 0;
};

namespace {

/// Size of the first output buffer in bytes: the largest possible 4:2:0 JPEG of this image,
/// whatever its content (libjpeg-turbo's tjBufSize), but at most 16 MiB.
unsigned long initial_buffer_bytes(const ImageView& image) {
  // libjpeg enlarges the buffer if this is not enough.
  constexpr std::uint64_t kMaxInitialBytes = 16 << 20;
  const auto side = [](int px) { return (static_cast<std::uint64_t>(px) + 15) / 16 * 16; };
  return std::min(kMaxInitialBytes, side(image.width) * side(image.height) * 3 + 2048);
}

/// @return false after a fatal error, whose text is in `errors`. Contains no objects with
/// destructors, because longjmp() would skip them.
bool compress(jpeg_compress_struct& state, JpegErrors& errors, const ImageView& image, int quality,
              unsigned char*& buffer, unsigned long& size) {
  if (setjmp(errors.jump) != 0) {
    jpeg_abort_compress(&state);
    return false;
  }
  jpeg_mem_dest(&state, &buffer, &size);
  state.image_width = static_cast<JDIMENSION>(image.width);
  state.image_height = static_cast<JDIMENSION>(image.height);
  state.input_components = 3;
  state.in_color_space = JCS_RGB;
  jpeg_set_defaults(&state);
  jpeg_set_quality(&state, quality, TRUE);
  jpeg_start_compress(&state, TRUE);
  while (state.next_scanline < state.image_height) {
    // libjpeg takes a pointer to mutable samples but only reads them.
    auto* row = const_cast<JSAMPLE*>(image.row(static_cast<int>(state.next_scanline)));
    jpeg_write_scanlines(&state, &row, 1);
  }
  jpeg_finish_compress(&state);
  return true;
}

}  // namespace

JpegEncoder::JpegEncoder() : codec_(std::make_unique<Codec>()) {
  codec_->errors.install(reinterpret_cast<j_common_ptr>(&codec_->state));
  if (setjmp(codec_->errors.jump) != 0) throw std::bad_alloc();
  jpeg_create_compress(&codec_->state);
}

JpegEncoder::~JpegEncoder() {
  jpeg_destroy_compress(&codec_->state);
}

void JpegEncoder::encode(const ImageView& image, int quality, std::vector<std::byte>& out) {
  const unsigned long needed = initial_buffer_bytes(image);
  if (codec_->capacity < needed) {
    codec_->buffer = std::make_unique_for_overwrite<unsigned char[]>(needed);
    codec_->capacity = needed;
  }
  unsigned char* buffer = codec_->buffer.get();
  unsigned long size = codec_->capacity;
  if (!compress(codec_->state, codec_->errors, image, quality, buffer, size)) {
    throw DataError(fmt::format("JPEG encoder: cannot encode {} x {} pixels: {}", image.width,
                                image.height, codec_->errors.text));
  }
  // libjpeg replaces a buffer that is too small with a larger one, which the caller has to free.
  struct Free {
    void operator()(unsigned char* memory) const { std::free(memory); }
  };
  const std::unique_ptr<unsigned char, Free> enlarged(buffer == codec_->buffer.get() ? nullptr
                                                                                     : buffer);
  const auto* bytes = reinterpret_cast<const std::byte*>(buffer);
  out.assign(bytes, bytes + size);
}

}  // namespace precast::data
