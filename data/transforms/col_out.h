#pragma once

#include <memory>

#include "data/transforms/transform.h"

namespace precast::data {

/// Drops random rows and columns: share `p_row` (0.15) and `p_col` (0.15), so the image becomes
/// smaller: int((1 - p) * side), as in Composer's ColOut. The choice differs for each image.
[[nodiscard]] std::unique_ptr<Transform> make_col_out();

}  // namespace precast::data
