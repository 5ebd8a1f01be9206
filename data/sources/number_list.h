#pragma once

#include <cstddef>
#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string_view>
#include <vector>

#include "data/beton/dtype.h"

namespace precast::data {

/// 2^53: a double represents every integer from -2^53 to 2^53 exactly.
inline constexpr std::int64_t kMaxExactInteger = std::int64_t{1} << 53;

/// A JSON list of numbers, or of such lists with equal shapes: `[[1, 2], [3, 4]]`.
struct NumberList {
  /// At most kMaxDimensions lengths, all above 0.
  std::vector<std::uint64_t> shape;
  /// Whether all numbers are integers that int64 represents.
  bool all_integers = true;
  /// Whether all integers are from -2^53 to 2^53, so that float64 represents them exactly.
  bool exact_as_float64 = true;

  /// Merges the properties of the list in another row. @return false if the shapes differ
  [[nodiscard]] bool merge(const NumberList& other);
  /// The type of an array of these numbers: int64 if all are integers, otherwise float64. Returns
  /// nothing if float64 could round an integer.
  [[nodiscard]] std::optional<ArrayFormat> format() const;
};

/// Returns the properties of a list of numbers, or nothing if `value` is anything else.
[[nodiscard]] std::optional<NumberList> read_number_list(const nlohmann::ordered_json& value);

/// The numbers of a list in C order, as elements of `dtype`, a type that NumberList::format()
/// returns.
/// @param document JSON text that read_number_list() accepts.
[[nodiscard]] std::vector<std::byte> number_bytes(std::string_view document,
                                                  std::string_view dtype);

}  // namespace precast::data
