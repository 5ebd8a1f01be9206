#include "data/beton/field_tag.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <nlohmann/json.hpp>
#include <optional>
#include <string_view>

#include "data/beton/dtype.h"
#include "framework/core/error.h"

namespace precast::data {
namespace {

using nlohmann::json;

constexpr std::string_view kMagic = "PCFIELD1";
constexpr std::size_t kMaxChannels = 4;
/// The height and width stored before an image's pixels.
constexpr std::size_t kPixelsHeaderBytes = 8;

std::string problem(const FieldTag& tag) {
  if (tag.kind == FieldTag::Kind::custom)
    return is_valid(tag.layout) ? ""
                                : "expected a layout of 1 to 65536 bytes, with alignment 1, 2, "
                                  "4, 8 or 16 and the pointer inside these bytes, got " +
                                      layout_text(tag.layout);
  if (dtype_bytes(tag.dtype) == 0)
    return fmt::format("expected a plain numpy type such as <u2, got '{}'", tag.dtype);
  if (tag.kind == FieldTag::Kind::pixels && (tag.channels == 0 || tag.channels > kMaxChannels))
    return fmt::format("expected 1 to {} channels, got {}", kMaxChannels, tag.channels);
  if (tag.kind == FieldTag::Kind::ragged && (tag.dims == 0 || tag.dims > kMaxDimensions))
    return fmt::format("expected 1 to {} dimensions, got {}", kMaxDimensions, tag.dims);
  return "";
}

json as_json(const FieldTag& tag) {
  json text = {{"kind", tag_kind_name(tag.kind)}};
  if (tag.kind == FieldTag::Kind::custom) {
    text["bytes"] = tag.layout.bytes;
    text["alignment"] = tag.layout.alignment;
    if (tag.layout.pointer_at) text["pointer_at"] = *tag.layout.pointer_at;
    return text;
  }
  text["dtype"] = tag.dtype;
  if (tag.kind == FieldTag::Kind::pixels) text["channels"] = tag.channels;
  if (tag.kind == FieldTag::Kind::ragged) text["dims"] = tag.dims;
  return text;
}

/// Returns a required member; the largest size_t, which is never valid, if the member is missing or
/// not an unsigned integer.
std::size_t number(const json& text, const char* key) {
  const auto found = text.find(key);
  return found != text.end() && found->is_number_unsigned()
             ? found->get<std::size_t>()
             : std::numeric_limits<std::size_t>::max();
}

FieldTag from_json(const json& text) {
  FieldTag tag;
  const std::string kind = text.value("kind", "");
  for (const auto known : {FieldTag::Kind::pixels, FieldTag::Kind::ragged, FieldTag::Kind::custom})
    if (kind == tag_kind_name(known)) tag.kind = known;
  if (tag.kind == FieldTag::Kind::custom) {
    tag.layout = {number(text, "bytes"), number(text, "alignment"), {}};
    if (text.contains("pointer_at")) tag.layout.pointer_at = number(text, "pointer_at");
  }
  if (tag.kind == FieldTag::Kind::none || tag.kind == FieldTag::Kind::custom) return tag;
  tag.dtype = text.value("dtype", "");
  if (tag.kind == FieldTag::Kind::pixels) tag.channels = number(text, "channels");
  if (tag.kind == FieldTag::Kind::ragged) tag.dims = number(text, "dims");
  return tag;
}

/// Size in bytes of an array with these extents; empty if the size exceeds 64 bits.
std::optional<std::uint64_t> bytes_of(const FieldTag& tag, std::span<const std::uint64_t> extents) {
  std::uint64_t bytes = dtype_bytes(tag.dtype);
  for (const std::uint64_t extent : extents)
    if (__builtin_mul_overflow(bytes, extent, &bytes)) return std::nullopt;
  return bytes;
}

}  // namespace

std::string_view tag_kind_name(FieldTag::Kind kind) {
  switch (kind) {
    case FieldTag::Kind::pixels:
      return "pixels";
    case FieldTag::Kind::ragged:
      return "ragged";
    case FieldTag::Kind::custom:
      return "custom";
    case FieldTag::Kind::none:
      break;
  }
  return "";
}

void put_tag(const FieldTag& tag, std::vector<std::byte>& arguments) {
  if (const std::string wrong = problem(tag); !wrong.empty())
    throw ConfigError(fmt::format("{} field: {}", tag_kind_name(tag.kind), wrong));
  const std::string text = as_json(tag).dump();
  require(kMagic.size() + text.size() < kTagBytes, "a tag's text fits into kTagBytes bytes");
  arguments.resize(kFieldArgumentsBytes);
  std::fill_n(arguments.begin() + kTagAt, kTagBytes, std::byte{0});
  std::memcpy(arguments.data() + kTagAt, kMagic.data(), kMagic.size());
  std::memcpy(arguments.data() + kTagAt + kMagic.size(), text.data(), text.size());
}

FieldTag parse_tag(const std::byte* arguments, const std::string& location) {
  const std::string_view tag_area(reinterpret_cast<const char*>(arguments + kTagAt), kTagBytes);
  if (!tag_area.starts_with(kMagic)) return {};
  const std::string_view text = tag_area.substr(kMagic.size(), tag_area.find('\0') - kMagic.size());
  const json parsed = json::parse(text, nullptr, false);
  FieldTag tag;
  std::string wrong = "it is not a JSON object";
  if (parsed.is_object()) {
    try {
      tag = from_json(parsed);
      wrong = tag.kind == FieldTag::Kind::none ? "" : problem(tag);
    } catch (const json::exception&) {
      wrong = "a member has the wrong type";
    }
  }
  if (wrong.empty()) return tag;
  throw DataError(fmt::format(
      "{}: expected a tag as described in data/FORMAT.md, got a damaged one: {}", location, wrong));
}

std::span<const std::byte> shaped_elements(const FieldTag& tag, std::span<const std::byte> blob,
                                           std::vector<std::uint64_t>& extents) {
  const bool pixels = tag.kind == FieldTag::Kind::pixels;
  require(pixels || tag.kind == FieldTag::Kind::ragged, "values of other fields have no shape");
  const std::size_t header = pixels ? kPixelsHeaderBytes : 8 * tag.dims;
  extents.clear();
  if (blob.size() >= header) {
    if (pixels) {
      extents = {load<std::uint32_t>(blob.data()), load<std::uint32_t>(blob.data() + 4),
                 tag.channels};
    } else {
      for (std::size_t i = 0; i < tag.dims; ++i)
        extents.push_back(load<std::uint64_t>(blob.data() + 8 * i));
    }
    const std::optional<std::uint64_t> bytes = bytes_of(tag, extents);
    if (bytes && *bytes == blob.size() - header && (!pixels || *bytes > 0))
      return blob.subspan(header);
  }
  throw DataError(
      fmt::format("expected a shape of {} bytes, then the elements of type {} that the shape "
                  "requires, got {} bytes with shape [{}]",
                  header, tag.dtype, blob.size(), fmt::join(extents, ", ")));
}

void store_shaped(const FieldTag& tag, std::span<const std::uint64_t> extents,
                  std::span<const std::byte> elements, std::vector<std::byte>& blob) {
  const bool pixels = tag.kind == FieldTag::Kind::pixels;
  require(extents.size() == (pixels ? 3 : tag.dims), "a value has the dimensions of its field");
  require(bytes_of(tag, extents) == elements.size(), "a value is complete");
  const std::size_t header = pixels ? kPixelsHeaderBytes : 8 * tag.dims;
  blob.resize(header + elements.size());
  std::ranges::copy(elements, blob.begin() + static_cast<std::ptrdiff_t>(header));
  for (std::size_t i = 0; i < (pixels ? 2 : extents.size()); ++i) {
    if (!pixels) {
      store(blob.data() + 8 * i, extents[i]);
      continue;
    }
    if (extents[i] == 0 || extents[i] > std::numeric_limits<std::uint32_t>::max())
      throw DataError(
          fmt::format("pixels field: expected an image with sides of 1 to {} px, got {} x {} px",
                      std::numeric_limits<std::uint32_t>::max(), extents[0], extents[1]));
    store(blob.data() + 4 * i, static_cast<std::uint32_t>(extents[i]));
  }
}

}  // namespace precast::data
