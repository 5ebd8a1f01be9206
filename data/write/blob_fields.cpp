#include "data/write/blob_fields.h"

#include <fmt/core.h>

#include <cmath>
#include <nlohmann/json.hpp>
#include <span>
#include <utility>

#include "data/beton/json_text.h"
#include "data/beton/layout.h"
#include "framework/core/error.h"

namespace precast::data {
namespace {

constexpr std::size_t kPointerBytes = 8;

/// Returns the bytes of a value that is a string or bytes. @param expected the field and its
/// possible values, for messages. @throws DataError for any other value.
std::span<const std::byte> bytes_of(const Value& value, const char* expected) {
  if (const auto* bytes = std::get_if<std::vector<std::byte>>(&value)) return *bytes;
  if (const auto* text = std::get_if<std::string>(&value))
    return std::as_bytes(std::span(text->data(), text->size()));
  throw DataError(fmt::format("{}, got a value of another type", expected));
}

/// Stores the blob, followed by `zeros` zero bytes, and its metadata: a pointer, which the writer
/// sets, and the size.
void store_sized(std::span<const std::byte> bytes, std::size_t zeros, EncodedValue& out) {
  out.blob.assign(bytes.begin(), bytes.end());
  out.blob.resize(bytes.size() + zeros, std::byte{0});
  out.metadata.assign(2 * kPointerBytes, std::byte{0});
  store(out.metadata.data() + kPointerBytes, std::uint64_t{out.blob.size()});
}

ArrayFormat checked(ArrayFormat format) {
  try {
    (void)array_bytes(format, "array field");
  } catch (const DataError& error) {
    throw ConfigError(error.what());
  }
  return format;
}

}  // namespace

void BytesField::encode(const Value& value, std::uint64_t /*sample*/, EncodedValue& out) {
  store_sized(bytes_of(value, "bytes field: expected bytes or a string"), 0, out);
}

void JsonField::encode(const Value& value, std::uint64_t /*sample*/, EncodedValue& out) {
  std::string number;
  if (const auto* integer = std::get_if<std::int64_t>(&value)) number = fmt::format("{}", *integer);
  if (const auto* floating = std::get_if<double>(&value)) {
    if (!std::isfinite(*floating))
      throw DataError(fmt::format("json field: expected a finite number, got {}", *floating));
    number = nlohmann::json(*floating).dump();
  }
  const std::span<const std::byte> text =
      number.empty() ? bytes_of(value, "json field: expected bytes, a string or a number")
                     : std::as_bytes(std::span(number.data(), number.size()));
  if (!is_json({reinterpret_cast<const char*>(text.data()), text.size()})) {
    throw DataError(fmt::format(
        "json field: expected a JSON document, got {} bytes that are not JSON", text.size()));
  }
  store_sized(text, 1, out);
}

ArrayField::ArrayField(FieldType type, ArrayFormat format)
    : type_(type),
      format_(checked(std::move(format))),
      arguments_(array_arguments(format_, "array field")) {
  require(type == FieldType::ndarray || type == FieldType::tensor,
          "an array field is an ndarray or a tensor field");
}

void ArrayField::encode(const Value& value, std::uint64_t /*sample*/, EncodedValue& out) {
  const auto* array = std::get_if<ArrayInput>(&value);
  if (array == nullptr || array->format != format_) {
    throw DataError(fmt::format(
        "{} field: expected an array {}, got {}", field_type_name(type_), describe(format_),
        array == nullptr ? "a value of another type" : describe(array->format)));
  }
  require(array->elements.size() == array_bytes(format_, "array field"), "an array is complete");
  out.blob = array->elements;
  out.metadata.assign(kPointerBytes, std::byte{0});
}

}  // namespace precast::data
