#pragma once

#include <cstdint>
#include <optional>

#include "data/beton/reader.h"
#include "data/loader/outputs.h"
#include "framework/core/export.h"

namespace precast::data {

/// A number in the array of a sample.
struct ArrayNumber {
  std::uint64_t sample = 0;
  double value = 0;
};

/// Searches an ndarray or tensor field for a number that is not from `low` to `high` (NaN is not),
/// in at most about `samples` samples, spread evenly over the file.
/// @param output made by resolve_outputs() for this reader.
/// @return the first such number; nothing if there is none or the output is of another kind.
/// @throws IoError, DataError
[[nodiscard]] PRECAST_API std::optional<ArrayNumber> find_outside(const BetonReader& reader,
                                                                  const Output& output, double low,
                                                                  double high,
                                                                  std::uint64_t samples);

}  // namespace precast::data
