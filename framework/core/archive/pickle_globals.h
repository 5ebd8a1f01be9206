#pragma once

#include <optional>
#include <string_view>

#include "framework/core/archive/pickle_reader.h"

namespace precast {

/// A class or function on the allow list, and the effect of calling it. A pickle that names any
/// other class or function is rejected.
struct PickleGlobal {
  PickleValue::Role role;
  /// The element type, if this is a storage type.
  DType dtype = DType::f32;
};

/// `find_pickle_global("collections", "OrderedDict")`; nothing if the allow list does not contain
/// it.
[[nodiscard]] std::optional<PickleGlobal> find_pickle_global(std::string_view module,
                                                             std::string_view name);

}  // namespace precast
