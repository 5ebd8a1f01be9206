#pragma once

#include <cstdint>
#include <vector>

#include "data/image.h"
#include "framework/core/export.h"

namespace precast::data {

/// How an image is brought to another size.
enum class ResizeFilter { area, bilinear, antialias };

/// Resizes with the semantics of OpenCV's INTER_AREA, which is what FFCV does when it writes and
/// when it reads: the true area average where no axis grows, else OpenCV's two-tap "area-mapped
/// bilinear" on both axes (corner-aligned, so not INTER_LINEAR; an axis that shrinks is then only
/// sampled). Within 1 level of OpenCV 4.6 at every pixel (opencv/modules/imgproc/src/resize.cpp).
/// Keeps its scratch memory between calls: one resizer a thread.
class PRECAST_API AreaResizer {
 public:
  /// @param in   at least 1 x 1.
  /// @param out  [out_height, out_width, 3] uint8 RGB without gaps, at least 1 x 1; must not
  /// overlap `in`.
  /// @param flip mirrors the result left to right.
  void resize(const ImageView& in, std::uint8_t* out, int out_height, int out_width,
              bool flip = false);

 private:
  /// What one axis adds up: output d is the sum over t < taps of weight[d * taps + t] *
  /// source[start[d] + t]. The number of taps is the same for all outputs (padded with zero
  /// weights): loops of fixed length predict well.
  struct Axis {
    int taps = 0;
    std::vector<int> start;
    std::vector<float> weight;

    void resize_to(int outputs, int tap_count);
    void plan_area(int source, int outputs);
    void plan_bilinear(int source, int outputs);
    void mirror();
  };

  Axis x_, y_;
  std::vector<float> column_sums_;
  std::vector<float> finished_row_;
  std::vector<const std::uint8_t*> rows_;
};

}  // namespace precast::data
