#pragma once

#include <memory>

#include "data/transforms/transform.h"

namespace precast::data {

/// Drops a share `p_row` (0.15) of the rows and `p_col` (0.15) of the columns at random, which
/// reduces each side to int((1 - p) * side), as in Composer's ColOut. The choice differs for each
/// image.
[[nodiscard]] std::unique_ptr<Transform> make_col_out();

}  // namespace precast::data
