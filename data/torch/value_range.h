#pragma once

#include <cstdint>
#include <optional>

#include "data/beton/reader.h"
#include "data/loader/outputs.h"
#include "framework/core/export.h"

namespace precast::data {

/// A number in the array or the mask of a sample.
struct ArrayNumber {
  std::uint64_t sample = 0;
  double value = 0;
};

/// The numbers from `low` to `high`, and `extra`.
struct ValueRange {
  double low = 0;
  double high = 0;
  std::optional<double> extra = {};
};

/// Searches an array, or a mask with one channel, for a number outside the range (NaN is outside),
/// in at least `samples` and less than twice as many samples, spread evenly over the file, or in
/// all samples of a smaller file. Damaged values are skipped: they are reported or replaced when
/// batches are loaded.
/// @param output made by resolve_outputs() for this reader.
/// @return the first such number; nothing if there is none or the output is of another kind.
/// @throws IoError, DataError
[[nodiscard]] PRECAST_API std::optional<ArrayNumber> find_out_of_range(const BetonReader& reader,
                                                                       const Output& output,
                                                                       const ValueRange& range,
                                                                       std::uint64_t samples);

}  // namespace precast::data
