#include "data/beton/field_info.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <nlohmann/json.hpp>
#include <string_view>
#include <unordered_set>

#include "data/beton/layout.h"
#include "framework/core/error.h"

namespace precast::data {
namespace {

std::string parse_name(const std::byte* at, const std::string& place) {
  std::string name(kFieldNameBytes, '\0');
  std::memcpy(name.data(), at, kFieldNameBytes);
  name.resize(std::min(name.find('\0'), kFieldNameBytes));
  const bool printable =
      std::ranges::all_of(name, [](char letter) { return letter >= ' ' && letter <= '~'; });
  if (name.empty() || !printable) {
    throw DataError(fmt::format("{}: expected a name of 1 to 16 printable ASCII characters, got {}",
                                place, name.empty() ? "an empty one" : "other bytes"));
  }
  return name;
}

FieldType parse_type(std::byte byte, const std::string& place) {
  const int id = std::to_integer<int>(byte);
  if (id == static_cast<int>(FieldType::custom)) {
    throw DataError(
        fmt::format("{}: has a custom type (255), whose layout is not stored in the file, so the "
                    "file cannot be read. Write it again with built-in fields",
                    place));
  }
  if (id > static_cast<int>(FieldType::tensor)) {
    throw DataError(fmt::format("{}: expected a type id of 0 to 6, got {}", place, id));
  }
  return static_cast<FieldType>(id);
}

/// Bytes of one element of a numpy type string such as `<f4`; 0 for one we do not know.
std::uint64_t element_bytes(std::string_view dtype) {
  constexpr std::string_view kOrders = "<>|=";
  constexpr std::string_view kKinds = "biufcSV";
  if (dtype.size() < 3 || kOrders.find(dtype[0]) == std::string_view::npos) return 0;
  if (kKinds.find(dtype[1]) == std::string_view::npos) return 0;
  std::uint32_t bytes = 0;
  const char* end = dtype.data() + dtype.size();
  const auto [stopped, failed] = std::from_chars(dtype.data() + 2, end, bytes);
  return failed == std::errc() && stopped == end ? bytes : 0;
}

/// The text is `[["", "<f4"]]`: one unnamed member.
std::string parse_dtype(const std::byte* arguments, const std::string& place) {
  const auto length = load<std::uint64_t>(arguments + kDtypeLengthAt);
  constexpr std::size_t kRoom = kFieldArgumentsBytes - kDtypeTextAt;
  if (length == 0 || length > kRoom) {
    throw DataError(
        fmt::format("{}: expected a dtype text of 1 to {} bytes, got {}", place, kRoom, length));
  }
  std::string text(length, '\0');
  std::memcpy(text.data(), arguments + kDtypeTextAt, length);
  const auto parsed = nlohmann::json::parse(text, nullptr, false);
  const bool one_member = parsed.is_array() && parsed.size() == 1 && parsed[0].is_array() &&
                          parsed[0].size() == 2 && parsed[0][1].is_string();
  const std::string dtype = one_member ? parsed[0][1].get<std::string>() : std::string();
  if (element_bytes(dtype) == 0) {
    throw DataError(
        fmt::format("{}: expected a plain numpy dtype such as [[\"\", \"<f4\"]], got "
                    "{} bytes that are none",
                    place, length));
  }
  return dtype;
}

void parse_array(const std::byte* arguments, const std::string& place, FieldInfo& field) {
  field.dtype = parse_dtype(arguments, place);
  for (std::size_t i = 0; i < kMaxDimensions; ++i) {
    field.shape.push_back(load<std::uint64_t>(arguments + 8 * i));
  }
  while (!field.shape.empty() && field.shape.back() == 0) field.shape.pop_back();
  if (field.shape.empty()) {
    throw DataError(fmt::format("{}: expected a shape, got none", place));
  }
  std::uint64_t bytes = element_bytes(field.dtype);
  bool fits = true;
  for (const std::uint64_t dimension : field.shape) {
    fits = fits && !__builtin_mul_overflow(bytes, dimension, &bytes) && bytes <= kMaxPageBytes;
  }
  if (!fits) {
    throw DataError(fmt::format("{}: expected a value of at most {} bytes, got shape [{}] of {}",
                                place, kMaxPageBytes, fmt::join(field.shape, ", "), field.dtype));
  }
  field.value_bytes = bytes;
}

}  // namespace

std::vector<FieldInfo> parse_fields(std::span<const std::byte> descriptors, std::size_t count,
                                    const std::string& place) {
  std::vector<FieldInfo> fields;
  std::vector<FieldType> types;
  std::unordered_set<std::string> names;
  for (std::size_t i = 0; i < count; ++i) {
    const std::byte* at = descriptors.data() + i * kFieldBytes;
    const std::string here = fmt::format("{}: field {}", place, i);
    FieldInfo field;
    field.type = parse_type(*at, here);
    field.name = parse_name(at + 1, here);
    if (!names.insert(field.name).second) {
      throw DataError(fmt::format("{}: expected unique names, got '{}' twice", here, field.name));
    }
    if (field.type == FieldType::ndarray || field.type == FieldType::tensor) {
      parse_array(at + 1 + kFieldNameBytes, fmt::format("{} ('{}')", here, field.name), field);
    }
    types.push_back(field.type);
    fields.push_back(std::move(field));
  }
  const RecordLayout layout = record_layout(types);
  for (std::size_t i = 0; i < count; ++i) fields[i].offset = layout.offsets[i];
  return fields;
}

}  // namespace precast::data
