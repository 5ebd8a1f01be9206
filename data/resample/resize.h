#pragma once

#include <cstdint>
#include <vector>

#include "data/image.h"
#include "framework/core/export.h"

namespace precast::data {

/// Resizes with the semantics of OpenCV's INTER_AREA, which is what FFCV does when it writes and when it reads:
/// the true area average where both axes shrink, else OpenCV's two-tap "area-mapped bilinear" on both axes
/// (corner-aligned, so not INTER_LINEAR). Within 1 level of OpenCV 4.6 at every pixel (opencv/modules/imgproc/src/
/// resize.cpp). Keeps its scratch memory between calls: one resizer a thread.
class PRECAST_API AreaResizer {
 public:
  AreaResizer();
  AreaResizer(AreaResizer&&) noexcept;
  AreaResizer& operator=(AreaResizer&&) noexcept;
  ~AreaResizer();

  /// @param in   at least 1 x 1.
  /// @param out  [out_height, out_width, 3] uint8 RGB without gaps; must not overlap `in`.
  /// @param flip mirrors the result left to right.
  void resize(const ImageView& in, std::uint8_t* out, int out_height, int out_width,
              bool flip = false);

 private:
  struct Scratch;
  std::vector<Scratch> scratch_;
};

}  // namespace precast::data
