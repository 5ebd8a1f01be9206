#include "data/write/number_fields.h"

#include "framework/core/error.h"

namespace precast::data {
namespace {

template <typename Number>
void store_number(Number number, EncodedValue& out) {
  out.blob.clear();
  out.metadata.resize(sizeof number);
  store(out.metadata.data(), number);
}

}  // namespace

void IntField::encode(const Value& value, std::uint64_t /*sample*/, EncodedValue& out) {
  const auto* number = std::get_if<std::int64_t>(&value);
  if (number == nullptr)
    throw DataError(
        "int field: expected an integer from -2^63 to 2^63 - 1, got a value of another type");
  store_number(*number, out);
}

void FloatField::encode(const Value& value, std::uint64_t /*sample*/, EncodedValue& out) {
  if (const auto* integer = std::get_if<std::int64_t>(&value)) {
    store_number(static_cast<double>(*integer), out);
  } else if (const auto* number = std::get_if<double>(&value)) {
    store_number(*number, out);
  } else {
    throw DataError("float field: expected a number, got a value of another type");
  }
}

}  // namespace precast::data
