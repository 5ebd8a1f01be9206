#pragma once

#include <optional>
#include <string_view>

#include "framework/core/archive/pickle_reader.h"

namespace precast {

/// A class or function that a pickle may name, and the effect of calling it. Any other name is
/// rejected.
struct PickleGlobal {
  PickleValue::Role role;
  /// Only for a storage type.
  DType dtype = DType::f32;
};

/// `find_pickle_global("collections", "OrderedDict")`; none if it is not on the list.
[[nodiscard]] std::optional<PickleGlobal> find_pickle_global(std::string_view module,
                                                             std::string_view name);

}  // namespace precast
