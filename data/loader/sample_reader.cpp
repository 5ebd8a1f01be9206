#include "data/loader/sample_reader.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <limits>
#include <type_traits>
#include <utility>

#include "data/beton/format.h"
#include "data/beton/json_text.h"
#include "framework/core/error.h"

namespace precast::data {
namespace {

/// @throws DataError if a To cannot hold it: a whole number does not wrap, a NaN is none.
template <typename To, typename From>
To whole(From value) {
  bool fits = false;
  if constexpr (std::is_integral_v<From>) {
    fits = std::in_range<To>(value);
  } else {
    constexpr double kEnd = 2.0 * static_cast<double>(std::numeric_limits<To>::max() / 2 + 1);
    fits = value > static_cast<double>(std::numeric_limits<To>::min()) - 1 && value < kEnd;
  }
  if (!fits)
    throw DataError(
        fmt::format("expected a number of {} bits that are whole, got {}", 8 * sizeof(To), value));
  return static_cast<To>(value);
}

/// Writes `value` as `type`; `out` is of any alignment. @throws DataError for a number that is none
/// of that type.
template <typename T>
void store_as(std::byte* out, ElementType type, T value) {
  switch (type) {
    case ElementType::f32:
      return store(out, static_cast<float>(value));
    case ElementType::f64:
      return store(out, static_cast<double>(value));
    case ElementType::i32:
      return store(out, whole<std::int32_t>(value));
    case ElementType::i64:
      return store(out, whole<std::int64_t>(value));
    default:
      return store(out, whole<std::uint8_t>(value));
  }
}

/// Copies the elements of an array of `extents` into one of `sides`, which is not smaller, and sets
/// the others to zero. Both C order.
void pad(std::span<const std::byte> elements, std::span<const std::uint64_t> extents,
         std::span<const std::int64_t> sides, std::size_t element_bytes, std::byte* out) {
  std::size_t to = element_bytes;
  std::size_t from = element_bytes;
  for (std::size_t i = 1; i < sides.size(); ++i) {
    to *= static_cast<std::size_t>(sides[i]);
    from *= extents[i];
  }
  const std::size_t rows = elements.empty() ? 0 : extents[0];
  if (from == to) {
    std::ranges::copy(elements, out);
  } else {
    for (std::size_t row = 0; row < rows; ++row)
      pad(elements.subspan(row * from, from), extents.subspan(1), sides.subspan(1), element_bytes,
          out + row * to);
  }
  std::memset(out + rows * to, 0, (static_cast<std::size_t>(sides[0]) - rows) * to);
}

}  // namespace

SampleReader::SampleReader(const BetonReader& reader, const std::vector<Output>& outputs,
                           std::uint64_t seed, const JpegDecoding& jpeg, bool verify)
    : reader_(reader), outputs_(outputs), verify_(verify) {
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
    const auto with_place = [&](const Error& error) {
      return fmt::format("{}: sample {}, field '{}': {}", reader_.path().string(), place.sample,
                         reader_.fields()[outputs_[i].field].name, error.what());
    };
    try {
      read_output(i, place, size_px, memory + field.offset + row * field.sample_bytes);
    } catch (const DataError& error) {
      throw DataError(with_place(error));
    } catch (const ConfigError& error) {
      throw ConfigError(with_place(error));
    }
  }
}

void SampleReader::read_output(std::size_t i, const SamplePlace& place, int image_size_px,
                               std::byte* out) {
  const Output& output = outputs_[i];
  switch (output.kind) {
    case OutputKind::image:
      images_[i]->decode(image(output.field, place.sample), place, image_size_px,
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
      std::memcpy(out, value(output.field, place.sample).data(), output.stored_bytes);
      return;
    case OutputKind::bytes:
      return read_text(output, place.sample, out);
    case OutputKind::shaped:
      return read_shaped(output, place.sample, out);
    case OutputKind::extents:
      return read_extents(output, place.sample, out);
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
    const ImageRecord mask = image(output.field, place.sample);
    check_mask_size(output, place.sample, static_cast<std::uint64_t>(mask.height),
                    static_cast<std::uint64_t>(mask.width));
    masks_[i]->decode(mask, place, image_size_px, values);
  } else {
    std::span<const std::byte> plane = value(output.field, place.sample);
    extents_.assign(output.shape.begin(), output.shape.end());
    if (extents_.empty())
      plane = shaped_elements(reader_.fields()[output.field].tag, plane, extents_);
    check_mask_size(output, place.sample, extents_[0], extents_[1]);
    masks_[i]->decode(reinterpret_cast<const std::uint8_t*>(plane.data()),
                      static_cast<int>(extents_[0]), static_cast<int>(extents_[1]), place,
                      image_size_px, values);
  }
  if (direct) return;
  for (std::size_t v = 0; v < shape.values(); ++v) {
    store_as(out + v * element_size(output.type), output.type, values[v]);
  }
}

std::span<const std::byte> SampleReader::value(std::size_t field, std::uint64_t sample) const {
  const std::span<const std::byte> bytes = reader_.blob(sample, field, window_);
  if (verify_) reader_.check_value(sample, field, bytes);
  return bytes;
}

ImageRecord SampleReader::image(std::size_t field, std::uint64_t sample) const {
  const ImageRecord record = reader_.image(sample, field, window_);
  if (verify_) reader_.check_value(sample, field, record.bytes);
  return record;
}

std::span<const std::byte> SampleReader::text(std::size_t field, std::uint64_t sample) const {
  const std::span<const std::byte> bytes = reader_.blob(sample, field, window_);
  if (reader_.fields()[field].type != FieldType::json) return bytes;
  return bytes.first(json_text(bytes).size());
}

void SampleReader::read_text(const Output& output, std::uint64_t sample, std::byte* out) const {
  if (verify_) (void)value(output.field, sample);
  const std::span<const std::byte> bytes = text(output.field, sample);
  const auto room = static_cast<std::size_t>(output.shape[0]);
  if (bytes.size() > room) {
    throw ConfigError(fmt::format("expected at most {} bytes, as pad_to says, got {}. Raise pad_to",
                                  room, bytes.size()));
  }
  std::ranges::copy(bytes, out);
  if (!output.variable) std::memset(out + bytes.size(), 0, room - bytes.size());
}

void SampleReader::read_shaped(const Output& output, std::uint64_t sample, std::byte* out) {
  const FieldTag& tag = reader_.fields()[output.field].tag;
  const std::span<const std::byte> elements =
      shaped_elements(tag, value(output.field, sample), extents_);
  const std::size_t element_bytes = element_size(output.type);
  if (output.variable) {
    require(elements.size() <= static_cast<std::size_t>(output.shape[0]) * element_bytes,
            "there is room for the largest value");
    std::ranges::copy(elements, out);
    return;
  }
  bool fits = true;
  for (std::size_t i = 0; i < extents_.size(); ++i) {
    const auto side = static_cast<std::uint64_t>(output.shape[i]);
    fits = fits && (output.exact ? extents_[i] == side : extents_[i] <= side);
  }
  if (fits) return pad(elements, extents_, output.shape, element_bytes, out);
  throw ConfigError(fmt::format(
      "expected {} [{}], got [{}]. {}",
      output.exact ? "images of the size of the first one," : "at most what pad_to says,",
      fmt::join(output.shape, ", "), fmt::join(extents_, ", "),
      output.exact ? "Say pad_to: [height, width]" : "Raise pad_to"));
}

void SampleReader::read_extents(const Output& output, std::uint64_t sample, std::byte* out) {
  if (output.shape.empty())
    return store(out, static_cast<std::int64_t>(text(output.field, sample).size()));
  const FieldTag& tag = reader_.fields()[output.field].tag;
  (void)shaped_elements(tag, reader_.blob(sample, output.field, window_), extents_);
  for (std::size_t i = 0; i < static_cast<std::size_t>(output.shape[0]); ++i)
    store(out + 8 * i, static_cast<std::int64_t>(extents_[i]));
}

void SampleReader::check_mask_size(const Output& output, std::uint64_t sample, std::uint64_t height,
                                   std::uint64_t width) const {
  const BetonReader::ImageSize image = reader_.image_size(sample, output.image_field);
  if (static_cast<std::uint64_t>(image.height) == height &&
      static_cast<std::uint64_t>(image.width) == width)
    return;
  throw ConfigError(fmt::format(
      "expected a mask of {} x {} px (height x width) as its image '{}' has, "
      "got {} x {}",
      image.height, image.width, reader_.fields()[output.image_field].name, height, width));
}

}  // namespace precast::data
