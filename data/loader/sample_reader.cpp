#include "data/loader/sample_reader.h"

#include <fmt/core.h>

#include "data/beton/reader.h"
#include "framework/core/error.h"

namespace precast::data {

void SampleReader::read(const SamplePlace& place, const BatchLayout& layout, std::size_t row,
                        std::byte* memory) {
  for (const OutputField& field : layout.fields()) {
    try {
      read_field(place, field, memory + field.offset + row * field.sample_bytes);
    } catch (const DataError& error) {
      throw DataError(fmt::format("{}: sample {}, field '{}': {}", reader_.path().string(),
                                  place.sample, field.name, error.what()));
    }
  }
}

void SampleReader::read_field(const SamplePlace& place, const OutputField& field, std::byte* out) {
  if (field.kind == FieldType::integer) {
    store(out, reader_.integer(place.sample, field.field));
  } else if (field.kind == FieldType::floating) {
    store(out, reader_.floating(place.sample, field.field));
  } else {
    const ImageRecord image = reader_.image(place.sample, field.field, window_);
    const auto size_px = static_cast<int>(field.shape[0]);
    if (field.type == ElementType::f32) {
      decoder_.decode_normalized(image, place, size_px, normalize_, reinterpret_cast<float*>(out));
    } else {
      decoder_.decode(image, place, size_px, reinterpret_cast<std::uint8_t*>(out));
    }
  }
}

}  // namespace precast::data
