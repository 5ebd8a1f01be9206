#include "data/image/exif.h"
#include "data/image/image_file.h"
#include "data/image/png_reader.h"
#include "framework/core/error.h"

namespace precast::data {

ImageFileFacts decode_png_file(std::span<const std::byte> file, Image& out) {
  PngReader reader(file, PngLayout::rgb8);
  ImageFileFacts facts;
  facts.format = ImageFormat::png;
  facts.grey = reader.stored_grey();
  facts.alpha = reader.stored_alpha();
  facts.sixteen_bit = reader.stored_sixteen_bit();
  allocate_pixels(reader.width(), reader.height(), out);
  require(reader.row_bytes() == reader.width() * 3, "libpng returns 8-bit RGB");
  reader.read(std::as_writable_bytes(std::span(out.pixels)));
  facts.orientation = exif_orientation(reader.exif());
  return facts;
}

}  // namespace precast::data
