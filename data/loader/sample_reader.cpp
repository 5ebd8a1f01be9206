#include "data/loader/sample_reader.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <string>
#include <type_traits>
#include <utility>
#include <variant>

#include "data/beton/format.h"
#include "data/beton/json_text.h"
#include "framework/core/error.h"

namespace precast::data {
namespace {

/// Converts a number to an integer; fractions are truncated. @throws ConfigError if the integer
/// does not fit in To, and for NaN.
template <typename To, typename From>
To checked_integer(From value) {
  bool fits = false;
  if constexpr (std::is_integral_v<From>) {
    fits = std::in_range<To>(value);
  } else {
    constexpr To kHalf = std::numeric_limits<To>::max() / 2 + 1;
    constexpr double kEnd = 2.0 * static_cast<double>(kHalf);
    fits = value > static_cast<double>(std::numeric_limits<To>::min()) - 1 && value < kEnd;
  }
  if (!fits)
    throw ConfigError(
        fmt::format("expected a number that fits in an integer of {} bits, got {}. "
                    "Convert to a larger type, or leave out `convert`",
                    8 * sizeof(To), value));
  return static_cast<To>(value);
}

/// Converts a number to a floating-point number; floats are rounded. @throws ConfigError for an
/// integer that would be rounded, because it may be a label or an id, and for a finite number that
/// would become infinite.
template <typename To, typename From>
To floating(From value) {
  bool fits = true;
  if constexpr (std::is_floating_point_v<From>) {
    fits = !std::isfinite(value) || std::isfinite(static_cast<To>(value));
  } else if constexpr (std::numeric_limits<From>::digits > std::numeric_limits<To>::digits) {
    // long double represents every int64.
    fits = static_cast<long double>(static_cast<To>(value)) == static_cast<long double>(value);
  }
  if (!fits && std::is_integral_v<From>)
    throw ConfigError(
        fmt::format("expected an integer that a float of {} bits represents exactly, got {}. "
                    "Convert to i64, or leave out `convert`",
                    8 * sizeof(To), value));
  if (!fits)
    throw ConfigError(
        fmt::format("expected a number within the range of a float of {} bits, got {}. "
                    "Convert to f64, or leave out `convert`",
                    8 * sizeof(To), value));
  return static_cast<To>(value);
}

/// Writes `value` as `type`; `out` may have any alignment. @throws the errors of checked_integer()
/// and floating().
template <typename T>
void store_as(std::byte* out, ElementType type, T value) {
  switch (type) {
    case ElementType::f32:
      return store(out, floating<float>(value));
    case ElementType::f64:
      return store(out, floating<double>(value));
    case ElementType::i32:
      return store(out, checked_integer<std::int32_t>(value));
    case ElementType::i64:
      return store(out, checked_integer<std::int64_t>(value));
    default:
      return store(out, checked_integer<std::uint8_t>(value));
  }
}

/// Copies an array of shape `extents` into an array of shape `sides`, which is at least as large,
/// and sets the remaining elements to zero. Both arrays are in C order.
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
  decoders_.resize(outputs.size());
  for (std::size_t i = 0; i < outputs.size(); ++i) {
    JpegDecoding decoding = jpeg;
    if (outputs[i].field != reader.first_field(FieldType::image)) decoding.index = nullptr;
    if (const auto* const image = std::get_if<ImageOutput>(&outputs[i].kind)) {
      if (image->max_stored_side_px) {
        decoders_[i].plan = std::make_unique<ImagePlanner>(image->pipeline, seed, image->view);
        continue;
      }
      decoders_[i].image =
          std::make_unique<SampleDecoder>(image->pipeline, seed, image->view, decoding);
    } else if (const auto* const mask = std::get_if<MaskOutput>(&outputs[i].kind)) {
      decoders_[i].mask =
          std::make_unique<MaskDecoder>(mask->pipeline, seed, mask->view, mask->fill, decoding);
    }
  }
}

void SampleReader::read(const SampleKey& key, const BatchLayout& layout, std::size_t row,
                        std::byte* memory) {
  const auto size_px = static_cast<int>(layout.image_size_px());
  for (std::size_t i = 0; i < outputs_.size(); ++i) {
    const OutputField& field = layout.fields()[i];
    const auto with_location = [&](const Error& error) {
      const std::string sample = reader_.sample_text(key.sample);
      std::string message = error.what();
      // The message for a wrong checksum already names the value.
      if (message.starts_with(sample)) return message;
      return fmt::format("{}, field '{}': {}", sample, reader_.fields()[outputs_[i].field].name,
                         message);
    };
    const Item item{.output = outputs_[i],
                    .decoders = decoders_[i],
                    .key = key,
                    .image_size_px = size_px,
                    .streamed = layout.streamed(),
                    .out = memory + field.offset + row * field.sample_bytes};
    try {
      std::visit([&](const auto& kind) { read_as(kind, item); }, item.output.kind);
    } catch (const DataError& error) {
      throw DataError(with_location(error));
    } catch (const ConfigError& error) {
      throw ConfigError(with_location(error));
    }
  }
}

void SampleReader::read_as(const ImageOutput& image, const Item& item) {
  const PixelFormat format{.type = item.output.type,
                           .channels_first = image.channels_first,
                           .normalize = image.normalize.get(),
                           // For types of 1 or 2 bytes, bypassing the cache saves less time than
                           // the extra copy takes.
                           .streamed = item.streamed && item.output.type == ElementType::f32};
  const FieldInfo& field = reader_.fields()[item.output.field];
  if (ImagePlanner* const planner = item.decoders.plan.get()) {
    const BetonReader::ImageSize stored = image_size(item.key.sample, item.output.field);
    return planner->plan(stored.height, stored.width, item.key, item.image_size_px, item.out);
  }
  SampleDecoder& decoder = *item.decoders.image;
  if (field.type == FieldType::image) {
    decoder.decode(stored_image(item), item.key, item.image_size_px, format, item.out);
  } else {
    decoder.decode(stored_pixels(field, stored_value(item), extents_), item.key, item.image_size_px,
                   format, item.out);
  }
}

void SampleReader::read_as(const MaskOutput& mask, const Item& item) {
  const ElementType type = item.output.type;
  const int size_px = item.image_size_px;
  if (type == ElementType::u8)
    return decode_mask(mask, item, reinterpret_cast<std::uint8_t*>(item.out));
  const PixelShape shape = mask.pipeline.output({size_px, size_px, mask.channels}, /*mask=*/true);
  mask_values_.resize(shape.values());
  decode_mask(mask, item, mask_values_.data());
  for (std::size_t v = 0; v < shape.values(); ++v)
    store_as(item.out + v * element_size(type), type, mask_values_[v]);
}

void SampleReader::decode_mask(const MaskOutput& mask, const Item& item, std::uint8_t* out) {
  if (mask.channels == 3) {
    const ImageRecord image = stored_image(item);
    if (image.mode != ImageMode::raw)
      throw ConfigError(
          "expected a mask that is stored raw, got a JPEG, which changes the values "
          "of pixels. Write the field with mode raw");
    check_mask_size(mask, item.key.sample, static_cast<std::uint64_t>(image.height),
                    static_cast<std::uint64_t>(image.width));
    return item.decoders.mask->decode(image, item.key, item.image_size_px, out);
  }
  std::span<const std::byte> plane = stored_value(item);
  extents_.assign(mask.sides.begin(), mask.sides.end());
  if (extents_.empty()) plane = shaped_elements(tag_of(item), plane, extents_);
  check_mask_size(mask, item.key.sample, extents_[0], extents_[1]);
  item.decoders.mask->decode(reinterpret_cast<const std::uint8_t*>(plane.data()),
                             static_cast<int>(extents_[0]), static_cast<int>(extents_[1]), item.key,
                             item.image_size_px, out);
}

void SampleReader::check_mask_size(const MaskOutput& mask, std::uint64_t sample,
                                   std::uint64_t height, std::uint64_t width) const {
  const BetonReader::ImageSize image = image_size(sample, mask.image_field);
  if (static_cast<std::uint64_t>(image.height) == height &&
      static_cast<std::uint64_t>(image.width) == width)
    return;
  throw ConfigError(fmt::format(
      "expected a mask of {} x {} px (height x width), the size of its image '{}', got {} x {}",
      image.height, image.width, reader_.fields()[mask.image_field].name, height, width));
}

BetonReader::ImageSize SampleReader::image_size(std::uint64_t sample, std::size_t field) const {
  const FieldInfo& info = reader_.fields()[field];
  if (info.type == FieldType::image) return reader_.image_size(sample, field);
  std::vector<std::uint64_t> extents;
  const StoredPixels image = stored_pixels(info, reader_.blob(sample, field, window_), extents);
  return {.width = image.width, .height = image.height};
}

void SampleReader::read_as(const IntegerOutput& integer, const Item& item) const {
  const std::uint64_t sample = item.key.sample;
  std::int64_t label = reader_.integer(sample, item.output.field);
  for (const auto& transform : integer.labels) label = transform->apply(label, sample);
  store_as(item.out, item.output.type, label);
}

void SampleReader::read_as(const FloatingOutput& /*floating*/, const Item& item) const {
  store_as(item.out, item.output.type, reader_.floating(item.key.sample, item.output.field));
}

void SampleReader::read_as(const ArrayOutput& array, const Item& item) const {
  std::memcpy(item.out, stored_value(item).data(), array.bytes);
}

void SampleReader::read_as(const BytesOutput& bytes, const Item& item) const {
  const std::span<const std::byte> text = text_of(item, stored_value(item));
  const auto capacity = static_cast<std::size_t>(bytes.capacity);
  if (text.size() > capacity) {
    throw ConfigError(fmt::format("expected at most {} bytes (pad_to), got {}. Raise pad_to",
                                  capacity, text.size()));
  }
  std::ranges::copy(text, item.out);
  if (!bytes.packed) std::memset(item.out + text.size(), 0, capacity - text.size());
}

void SampleReader::read_as(const ShapedOutput& shaped, const Item& item) {
  const std::span<const std::byte> elements =
      shaped_elements(tag_of(item), stored_value(item), extents_);
  const std::size_t element_bytes = element_size(item.output.type);
  if (shaped.size == ShapedOutput::Size::packed) {
    require(elements.size() <= static_cast<std::size_t>(shaped.shape[0]) * element_bytes,
            "there is room for the largest value");
    std::ranges::copy(elements, item.out);
    return;
  }
  const bool exact = shaped.size == ShapedOutput::Size::exact;
  bool fits = true;
  for (std::size_t i = 0; i < extents_.size(); ++i) {
    const auto side = static_cast<std::uint64_t>(shaped.shape[i]);
    fits = fits && (exact ? extents_[i] == side : extents_[i] <= side);
  }
  if (fits) return pad(elements, extents_, shaped.shape, element_bytes, item.out);
  throw ConfigError(fmt::format("expected {} [{}], got [{}]. {}",
                                exact ? "images of the same size as the first," : "at most pad_to,",
                                fmt::join(shaped.shape, ", "), fmt::join(extents_, ", "),
                                exact ? "Set pad_to: [height, width]" : "Raise pad_to"));
}

void SampleReader::read_as(const LengthOutput& /*length*/, const Item& item) const {
  store(item.out, static_cast<std::int64_t>(text_of(item, unchecked_value(item)).size()));
}

void SampleReader::read_as(const ExtentsOutput& extents, const Item& item) {
  (void)shaped_elements(tag_of(item), unchecked_value(item), extents_);
  for (std::size_t i = 0; i < extents.dimensions; ++i)
    store(item.out + 8 * i, static_cast<std::int64_t>(extents_[i]));
}

void SampleReader::read_as(const SampleIdOutput& /*id*/, const Item& item) const {
  store_as(item.out, item.output.type, static_cast<std::int64_t>(item.key.sample));
}

const FieldTag& SampleReader::tag_of(const Item& item) const {
  return reader_.fields()[item.output.field].tag;
}

std::span<const std::byte> SampleReader::unchecked_value(const Item& item) const {
  return reader_.blob(item.key.sample, item.output.field, window_);
}

std::span<const std::byte> SampleReader::stored_value(const Item& item) const {
  const std::span<const std::byte> bytes = unchecked_value(item);
  if (verify_) reader_.check_value(item.key.sample, item.output.field, bytes);
  return bytes;
}

ImageRecord SampleReader::stored_image(const Item& item) const {
  const ImageRecord record = reader_.image(item.key.sample, item.output.field, window_);
  if (verify_) reader_.check_value(item.key.sample, item.output.field, record.bytes);
  return record;
}

std::span<const std::byte> SampleReader::text_of(const Item& item,
                                                 std::span<const std::byte> bytes) const {
  if (reader_.fields()[item.output.field].type != FieldType::json) return bytes;
  return bytes.first(json_text(bytes).size());
}

}  // namespace precast::data
