#include "data/resample/resize_plan.h"

#include <algorithm>

namespace precast::data {

bool has_two_taps(int height, int width, int out_height, int out_width, ResizeFilter filter) {
  const bool any_grows = out_height > height || out_width > width;
  const bool all_grow = out_height >= height && out_width >= width;
  return filter == ResizeFilter::bilinear || (filter == ResizeFilter::area && any_grows) ||
         (filter == ResizeFilter::antialias && all_grow);
}

ResizePlan::Method ResizePlan::plan(int height, int width, int out_height, int out_width, bool flip,
                                    ResizeFilter filter) {
  if (has_two_taps(height, width, out_height, out_width, filter)) {
    plan_blends(filter, width, out_width, x_blends);
    plan_blends(filter, height, out_height, y_blends);
    if (flip) std::ranges::reverse(x_blends);
    return Method::blend;
  }
  if (filter == ResizeFilter::area) {
    x_axis.plan_area(width, out_width);
    y_axis.plan_area(height, out_height);
  } else {
    x_axis.plan_triangle(width, out_width);
    y_axis.plan_triangle(height, out_height);
  }
  if (flip) x_axis.mirror();
  return std::max(x_axis.taps, y_axis.taps) > kMaxFixedTaps ? Method::convolve_in_float
                                                            : Method::convolve;
}

int max_taps(int source, int output, ResizeFilter filter) {
  WeightedAxis axis;
  if (filter == ResizeFilter::area) axis.plan_area(source, output);
  if (filter == ResizeFilter::antialias) axis.plan_triangle(source, output);
  return std::max(2, axis.taps);
}

}  // namespace precast::data
