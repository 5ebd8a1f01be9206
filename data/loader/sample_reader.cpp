#include "data/loader/sample_reader.h"

#include <fmt/core.h>

#include <cstring>

#include "data/beton/format.h"
#include "framework/core/error.h"

namespace precast::data {
namespace {

/// Writes `value` as `type`; `out` is of any alignment.
template <typename T>
void store_as(std::byte* out, ElementType type, T value) {
  switch (type) {
    case ElementType::f32:
      return store(out, static_cast<float>(value));
    case ElementType::f64:
      return store(out, static_cast<double>(value));
    case ElementType::i32:
      return store(out, static_cast<std::int32_t>(value));
    case ElementType::i64:
      return store(out, static_cast<std::int64_t>(value));
    default:
      return store(out, static_cast<std::uint8_t>(value));
  }
}

}  // namespace

SampleReader::SampleReader(const BetonReader& reader, const std::vector<Output>& outputs,
                           std::uint64_t seed, const JpegDecoding& jpeg)
    : reader_(reader), outputs_(outputs) {
  for (const Output& output : outputs) {
    const bool image = output.kind == OutputKind::image;
    const bool mask = output.kind == OutputKind::mask;
    JpegDecoding decoding = jpeg;
    if (output.field != reader.first_field(FieldType::image)) decoding.index = nullptr;
    images_.push_back(
        image ? std::make_unique<SampleDecoder>(output.image, seed, output.view, decoding)
              : nullptr);
    masks_.push_back(
        mask ? std::make_unique<MaskDecoder>(output.image, seed, output.view, output.fill, decoding)
             : nullptr);
  }
}

void SampleReader::read(const SamplePlace& place, const BatchLayout& layout, std::size_t row,
                        std::byte* memory) {
  const auto size_px = static_cast<int>(layout.image_size_px());
  for (std::size_t i = 0; i < outputs_.size(); ++i) {
    const OutputField& field = layout.fields()[i];
    try {
      read_output(i, place, size_px, memory + field.offset + row * field.sample_bytes);
    } catch (const DataError& error) {
      throw DataError(fmt::format("{}: sample {}, field '{}': {}", reader_.path().string(),
                                  place.sample, reader_.fields()[outputs_[i].field].name,
                                  error.what()));
    }
  }
}

void SampleReader::read_output(std::size_t i, const SamplePlace& place, int image_size_px,
                               std::byte* out) {
  const Output& output = outputs_[i];
  switch (output.kind) {
    case OutputKind::image:
      images_[i]->decode(reader_.image(place.sample, output.field, window_), place, image_size_px,
                         {.type = output.type,
                          .channels_first = output.channels_first,
                          .normalize = output.normalize.get()},
                         out);
      return;
    case OutputKind::mask:
      return read_mask(i, place, image_size_px, out);
    case OutputKind::integer: {
      std::int64_t label = reader_.integer(place.sample, output.field);
      for (const auto& transform : output.labels) label = transform->apply(label, place.sample);
      return store_as(out, output.type, label);
    }
    case OutputKind::floating:
      return store_as(out, output.type, reader_.floating(place.sample, output.field));
    case OutputKind::array:
      std::memcpy(out, reader_.blob(place.sample, output.field, window_).data(),
                  output.stored_bytes);
      return;
    case OutputKind::sample_id:
      return store_as(out, output.type, static_cast<std::int64_t>(place.sample));
  }
}

void SampleReader::read_mask(std::size_t i, const SamplePlace& place, int image_size_px,
                             std::byte* out) {
  const Output& output = outputs_[i];
  const int channels = output.channels;
  const PixelShape shape =
      output.image.output({image_size_px, image_size_px, channels}, /*mask=*/true);
  const bool direct = output.type == ElementType::u8;
  if (!direct) mask_values_.resize(shape.values());
  std::uint8_t* const values = direct ? reinterpret_cast<std::uint8_t*>(out) : mask_values_.data();
  if (channels == 3) {
    const ImageRecord mask = reader_.image(place.sample, output.field, window_);
    check_mask_size(output, place.sample, mask.height, mask.width);
    masks_[i]->decode(mask, place, image_size_px, values);
  } else {
    const auto height = static_cast<int>(output.shape[0]);
    const auto width = static_cast<int>(output.shape[1]);
    check_mask_size(output, place.sample, height, width);
    const auto* const mask = reinterpret_cast<const std::uint8_t*>(
        reader_.blob(place.sample, output.field, window_).data());
    masks_[i]->decode(mask, height, width, place, image_size_px, values);
  }
  if (direct) return;
  for (std::size_t v = 0; v < shape.values(); ++v) {
    store_as(out + v * element_size(output.type), output.type, values[v]);
  }
}

void SampleReader::check_mask_size(const Output& output, std::uint64_t sample, int height,
                                   int width) const {
  const ImageRecord image = reader_.image(sample, output.image_field, window_);
  if (image.height == height && image.width == width) return;
  throw DataError(fmt::format(
      "expected a mask of {} x {} px (height x width) as its image '{}' has, "
      "got {} x {}",
      image.height, image.width, reader_.fields()[output.image_field].name, height, width));
}

}  // namespace precast::data
