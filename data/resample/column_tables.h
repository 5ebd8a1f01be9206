#pragma once

#include <cstdint>
#include <vector>

#include "data/resample/axis.h"
#include "data/resample/kernels.h"

namespace precast::data {

/// These functions convert the plan of an axis into the tables that the loops over columns in
/// kernels.h read.

/// @return whether the loop must read the output of pair_pixels instead of a row, because the
/// source pixels of neighbouring outputs are too far apart or a row is shorter than a window.
bool plan_column_blend(const std::vector<Blend>& outputs, int source, ColumnBlend& columns);

/// Writes the two source pixels of each output side by side.
/// @param row [source, 3]. @param out 6 bytes for each output.
void pair_pixels(const std::uint8_t* row, int source, const std::vector<Blend>& outputs,
                 std::uint8_t* out);

void plan_column_weights(const WeightedAxis& axis, ColumnWeights& columns);

}  // namespace precast::data
