#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "framework/core/export.h"

namespace precast::data {

class BetonReader;

/// Chooses samples by their numbers, sizes and images' modes, as in
///     label < 10
///     label in [1, 2, 3] and not (weight <= 0.5)
///     label in (1, 5) and width > 300 and mode == jpg
///     "class id" == 1
/// A comparison is NAME (< <= > >= == !=) NUMBER, NAME in [NUMBERS] or NAME not in [NUMBERS], names
/// as SampleProperty knows them, in double quotes if they are more than letters, digits, _ and .;
/// (NUMBERS) is [NUMBERS]; an image's mode is compared with jpg and
/// raw. `not` binds tighter than `and`, `and` tighter than `or`. Looks at metadata alone. Const and
/// thread-safe.
class PRECAST_API SampleFilter {
 public:
  /// @throws ConfigError saying what was expected at which column.
  explicit SampleFilter(std::string_view expression);
  SampleFilter(const SampleFilter&) = delete;
  SampleFilter& operator=(const SampleFilter&) = delete;
  ~SampleFilter();

  /// The samples from `first` to `end` - 1 that fit, ascending. @throws ConfigError if the
  /// expression names what is not there or is no number.
  [[nodiscard]] std::vector<std::uint64_t> select(const BetonReader& reader, std::uint64_t first,
                                                  std::uint64_t end) const;

  struct Node;

 private:
  std::unique_ptr<const Node> root_;
};

}  // namespace precast::data
