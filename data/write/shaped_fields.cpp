#include "data/write/shaped_fields.h"

#include <fmt/format.h>

#include <span>
#include <utility>

#include "data/image/image_file.h"
#include "data/write/png_pixels.h"
#include "framework/core/error.h"

namespace precast::data {
namespace {

ArrayInput rgb_array(const Image& image) {
  const auto bytes = std::as_bytes(std::span(image.pixels));
  return {{"|u1",
           {static_cast<std::uint64_t>(image.height), static_cast<std::uint64_t>(image.width), 3}},
          {bytes.begin(), bytes.end()}};
}

/// Returns the image in a value as an array [H, W, C].
ArrayInput image_array(const Value& value) {
  if (const auto* array = std::get_if<ArrayInput>(&value)) {
    ArrayInput image = *array;
    if (image.format.shape.size() == 2) image.format.shape.push_back(1);
    if (image.format.shape.size() == 3) return image;
    throw DataError(fmt::format("pixels field: expected an array [H, W] or [H, W, C], got {}",
                                describe(array->format)));
  }
  const auto* input = std::get_if<ImageInput>(&value);
  if (input == nullptr)
    throw DataError("pixels field: expected an image or an array, got a value of another type");
  if (input->file.empty() && input->pixels.pixels.empty())
    throw DataError("pixels field: expected an image, got an empty file");
  if (input->file.empty()) return rgb_array(input->pixels);
  if (image_format(input->file) == ImageFormat::png) return png_pixels(input->file);
  Image decoded;
  (void)decode_image_file(input->file, decoded);
  return rgb_array(decoded);
}

const ArrayInput& array_of(const Value& value) {
  if (const auto* array = std::get_if<ArrayInput>(&value)) return *array;
  throw DataError("ragged field: expected an array, got a value of another type");
}

}  // namespace

ShapedField::ShapedField(FieldTag tag) : tag_(std::move(tag)) {
  (void)arguments();
}

std::vector<std::byte> ShapedField::arguments() const {
  std::vector<std::byte> arguments;
  put_tag(tag_, arguments);
  return arguments;
}

void ShapedField::store_array(const ArrayInput& array, EncodedValue& out) const {
  store_shaped(tag_, array.format.shape, array.elements, out.blob);
  out.metadata.assign(16, std::byte{0});
  store(out.metadata.data() + 8, std::uint64_t{out.blob.size()});
}

FieldTag PixelsField::tag_for(const Value& value) {
  const ArrayInput image = image_array(value);
  return {.kind = FieldTag::Kind::pixels,
          .dtype = image.format.dtype,
          .channels = image.format.shape[2]};
}

void PixelsField::encode(const Value& value, std::uint64_t /*sample*/, EncodedValue& out) {
  const ArrayInput image = image_array(value);
  if (image.format.dtype != tag().dtype || image.format.shape[2] != tag().channels) {
    throw DataError(fmt::format(
        "pixels field: expected images with {} channels of type {}, like the first one, got {} "
        "channels of type {}",
        tag().channels, tag().dtype, image.format.shape[2], image.format.dtype));
  }
  store_array(image, out);
}

FieldTag RaggedField::tag_for(const Value& value) {
  const ArrayFormat& format = array_of(value).format;
  return {.kind = FieldTag::Kind::ragged, .dtype = format.dtype, .dims = format.shape.size()};
}

void RaggedField::encode(const Value& value, std::uint64_t /*sample*/, EncodedValue& out) {
  const ArrayInput& array = array_of(value);
  if (array.format.dtype != tag().dtype || array.format.shape.size() != tag().dims) {
    throw DataError(fmt::format(
        "ragged field: expected arrays of type {} with {} dimensions, like the first one, got {}",
        tag().dtype, tag().dims, describe(array.format)));
  }
  store_array(array, out);
}

}  // namespace precast::data
