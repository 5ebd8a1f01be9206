#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "framework/core/export.h"

namespace precast {

/// `1:02:03`, `4:05` or `6.7 s`; `?` for a negative or infinite number and for NaN.
[[nodiscard]] PRECAST_API std::string format_duration(double seconds);
/// `12.3 MB` (powers of 1000).
[[nodiscard]] PRECAST_API std::string format_bytes(double bytes);
/// `1 page`, `2 pages`, `3 classes`, `4 batches`. @param one the noun in the singular; irregular
/// plurals are not supported.
[[nodiscard]] PRECAST_API std::string format_count(std::uint64_t count, std::string_view one);
/// The first `max` names and the number of the remaining ones: `a, b, c, d and 92 more`.
[[nodiscard]] PRECAST_API std::string first_names(const std::vector<std::string>& names,
                                                  std::size_t max);

}  // namespace precast
