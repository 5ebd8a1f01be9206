#pragma once

#include <cstddef>
#include <optional>
#include <vector>

#include "framework/core/config/node.h"
#include "framework/core/config/schema.h"
#include "tools/experiments/grid/axis.h"
#include "tools/experiments/trial/trial.h"

namespace precast::tools {

/// The combinations of the axes' values: every value with every value of the other axes, except
/// that axes in the same list of `zip` use their n-th values together.
class AxisProduct {
 public:
  /// @param zip `[[key, key], ...]` or null. Mistakes in it are added to the diagnostics.
  AxisProduct(std::vector<SweepAxis> axes, const ConfigNode& zip, Diagnostics& diagnostics);

  /// The number of combinations; nothing if it is larger than `most`.
  [[nodiscard]] std::optional<std::size_t> size(std::size_t most) const;

  /// The values of all axes, in their order, in combination `number`; the last axis changes
  /// fastest. @pre number < size(), and the constructor reported no mistakes
  [[nodiscard]] std::vector<Setting> settings(std::size_t number) const;

 private:
  /// Indices of the axes that use their n-th values together.
  using Group = std::vector<std::size_t>;

  std::vector<SweepAxis> axes_;
  std::vector<Group> groups_;
};

}  // namespace precast::tools
