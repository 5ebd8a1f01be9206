#pragma once

#include <memory>

#include "data/transforms/transform.h"

namespace precast::data {

/// Drops the fraction `p_row` (0.15) of the rows and `p_col` (0.15) of the columns at random, as in
/// Composer's ColOut. Of each side, int((1 - p) * side) px remain. The choice differs for each
/// image.
[[nodiscard]] std::unique_ptr<Transform> make_col_out();

}  // namespace precast::data
