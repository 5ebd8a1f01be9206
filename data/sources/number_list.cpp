#include "data/sources/number_list.h"

#include <nlohmann/json.hpp>
#include <span>

#include "data/beton/format.h"

namespace precast::data {
namespace {

using Json = nlohmann::ordered_json;

constexpr std::string_view kInt64 = "<i8";
constexpr std::string_view kFloat64 = "<f8";

/// @param value a number.
void inspect_number(const Json& value, NumberList& list) {
  list.all_integers = list.all_integers && value.is_number_integer();
  if (value.is_number_unsigned()) {
    const auto number = value.get<std::uint64_t>();
    list.all_integers = list.all_integers && number <= INT64_MAX;
    list.exact_as_float64 = list.exact_as_float64 && number <= kMaxExactInteger;
  } else if (value.is_number_integer()) {
    list.exact_as_float64 = list.exact_as_float64 && value.get<std::int64_t>() >= -kMaxExactInteger;
  }
}

template <typename Number>
void append(const Json& value, std::vector<std::byte>& bytes) {
  if (value.is_number()) {
    const Number number = value.get<Number>();
    const auto added = std::as_bytes(std::span(&number, 1));
    bytes.insert(bytes.end(), added.begin(), added.end());
  } else if (value.is_array()) {
    for (const Json& item : value) append<Number>(item, bytes);
  }
}

}  // namespace

bool NumberList::merge(const NumberList& other) {
  all_integers = all_integers && other.all_integers;
  exact_as_float64 = exact_as_float64 && other.exact_as_float64;
  return shape == other.shape;
}

std::optional<ArrayFormat> NumberList::format() const {
  if (all_integers) return ArrayFormat{std::string(kInt64), shape};
  if (exact_as_float64) return ArrayFormat{std::string(kFloat64), shape};
  return std::nullopt;
}

std::optional<NumberList> read_number_list(const Json& value) {
  if (!value.is_array() || value.empty()) return std::nullopt;
  NumberList list{.shape = {value.size()}};
  std::optional<NumberList> inner;
  for (const Json& item : value) {
    if (item.is_number() && !inner) {
      inspect_number(item, list);
      continue;
    }
    const auto next = read_number_list(item);
    // The item is neither a number nor a list of numbers, or numbers and lists are mixed.
    if (!next || (!inner && &item != &value.front())) return std::nullopt;
    if (!inner)
      inner = next;
    else if (!inner->merge(*next))
      return std::nullopt;
  }
  if (!inner) return list;
  inner->shape.insert(inner->shape.begin(), value.size());
  return inner->shape.size() <= kMaxDimensions ? inner : std::nullopt;
}

std::vector<std::byte> number_bytes(std::string_view document, std::string_view dtype) {
  const Json value = Json::parse(document, nullptr, /*allow_exceptions=*/false);
  std::vector<std::byte> bytes;
  if (dtype == kInt64)
    append<std::int64_t>(value, bytes);
  else
    append<double>(value, bytes);
  return bytes;
}

}  // namespace precast::data
