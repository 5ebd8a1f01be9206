#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "framework/core/export.h"

namespace precast::data {

class BetonReader;

/// Selects samples by the values of their number fields, the sizes of their images and other
/// values, and the modes of their images, as in
///     label < 10
///     label in [1, 2, 3] and not (weight <= 0.5)
///     label in (1, 5) and width > 300 and mode == jpg
///     "class id" == 1
///     label == "dogs" or label in ["cats", "green apples"]
/// A comparison is NAME (< <= > >= == !=) NUMBER, NAME in [NUMBERS] or NAME not in [NUMBERS].
/// Numbers are finite; with a float field, a number means the double that is nearest to it (0.1 is
/// equal to a stored 0.1). Names are those of SampleProperty. A name must be in quotes if it is
/// `not`, begins with a digit or a dot, or has characters other than letters, digits, _ and dots.
/// (NUMBERS) is the same as [NUMBERS]. An image's mode is compared with jpg or raw. A class name in
/// single or double quotes stands for the labels of all classes with this name. It is allowed with
/// ==, !=, in and not in, for int fields whose class names are in the file.
/// `not` binds tighter than `and`, `and` tighter than `or`. Reads only metadata. Const and
/// thread-safe.
class PRECAST_API SampleFilter {
 public:
  /// @throws ConfigError stating what was expected, and at which column.
  explicit SampleFilter(std::string_view expression);
  SampleFilter(const SampleFilter&) = delete;
  SampleFilter& operator=(const SampleFilter&) = delete;
  ~SampleFilter();

  /// Returns the samples from `first` to `end` - 1 that match, in ascending order. @throws
  /// ConfigError if the expression names something that does not exist or is not a number, or a
  /// class name that is not in the file; for an unknown name, the message suggests the nearest one.
  [[nodiscard]] std::vector<std::uint64_t> select(const BetonReader& reader, std::uint64_t first,
                                                  std::uint64_t end) const;

  struct Node;

 private:
  std::unique_ptr<const Node> root_;
};

}  // namespace precast::data
