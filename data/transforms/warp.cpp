#include "data/transforms/warp.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <numbers>

namespace precast::data {
namespace {

double radians(double degrees) {
  return degrees * std::numbers::pi / 180;
}

/// The source positions of one output row: source = start + step * x.
struct RowPath {
  float x, y, step_x, step_y;
};

template <int kChannels>
void nearest_row(const std::uint8_t* source, const PixelShape& shape, const RowPath& path,
                 const std::array<std::uint8_t, 3>& fill, std::uint8_t* out) {
  for (int x = 0; x < shape.width; ++x, out += kChannels) {
    const float at = static_cast<float>(x);
    // Rounds halves to even, as grid_sample does.
    const auto sx = static_cast<int>(std::lrintf(path.x + path.step_x * at));
    const auto sy = static_cast<int>(std::lrintf(path.y + path.step_y * at));
    const bool inside = static_cast<unsigned>(sx) < static_cast<unsigned>(shape.width) &&
                        static_cast<unsigned>(sy) < static_cast<unsigned>(shape.height);
    const std::uint8_t* const from =
        inside ? source + (std::ptrdiff_t{sy} * shape.width + sx) * kChannels : fill.data();
    for (int c = 0; c < kChannels; ++c) out[c] = from[c];
  }
}

template <int kChannels>
void bilinear_row(const std::uint8_t* source, const PixelShape& shape, const RowPath& path,
                  const std::array<std::uint8_t, 3>& fill, std::uint8_t* out) {
  const auto pixel = [&](int x, int y) {
    const bool inside = x >= 0 && y >= 0 && x < shape.width && y < shape.height;
    return inside ? source + (std::ptrdiff_t{y} * shape.width + x) * kChannels : fill.data();
  };
  for (int x = 0; x < shape.width; ++x, out += kChannels) {
    const float sx = path.x + path.step_x * static_cast<float>(x);
    const float sy = path.y + path.step_y * static_cast<float>(x);
    const float left = std::floor(sx);
    const float top = std::floor(sy);
    const float x_fraction = sx - left;
    const float y_fraction = sy - top;
    // Far outside the image, all four pixels are the fill colour; clamping keeps the integers
    // small.
    const int x0 = static_cast<int>(std::clamp(left, -2.0F, static_cast<float>(shape.width)));
    const int y0 = static_cast<int>(std::clamp(top, -2.0F, static_cast<float>(shape.height)));
    const std::uint8_t* const a = pixel(x0, y0);
    const std::uint8_t* const b = pixel(x0 + 1, y0);
    const std::uint8_t* const c = pixel(x0, y0 + 1);
    const std::uint8_t* const d = pixel(x0 + 1, y0 + 1);
    for (int channel = 0; channel < kChannels; ++channel) {
      const float upper = static_cast<float>(a[channel]) * (1 - x_fraction) +
                          static_cast<float>(b[channel]) * x_fraction;
      const float lower = static_cast<float>(c[channel]) * (1 - x_fraction) +
                          static_cast<float>(d[channel]) * x_fraction;
      out[channel] =
          static_cast<std::uint8_t>(std::lrintf(upper * (1 - y_fraction) + lower * y_fraction));
    }
  }
}

template <int kChannels>
void warp_rows(const Pixels& image, const AffineMatrix& m, Interpolation interpolation,
               const std::array<std::uint8_t, 3>& fill, const std::uint8_t* source) {
  const double middle_x = (image.shape.width - 1) * 0.5;
  const double middle_y = (image.shape.height - 1) * 0.5;
  for (int y = 0; y < image.shape.height; ++y) {
    const double dy = y - middle_y;
    const RowPath path{static_cast<float>(m[1] * dy + m[2] + middle_x - m[0] * middle_x),
                       static_cast<float>(m[4] * dy + m[5] + middle_y - m[3] * middle_x),
                       static_cast<float>(m[0]), static_cast<float>(m[3])};
    if (interpolation == Interpolation::nearest) {
      nearest_row<kChannels>(source, image.shape, path, fill, image.row(y));
    } else {
      bilinear_row<kChannels>(source, image.shape, path, fill, image.row(y));
    }
  }
}

}  // namespace

AffineMatrix inverse_matrix(const AffineParameters& p) {
  const double angle = radians(p.angle);
  const double shear_y = radians(p.shear[1]);
  const double tan_x = std::tan(radians(p.shear[0]));
  // [a b; c d] = rotation * shear y * shear x, with determinant 1.
  const double a = std::cos(angle - shear_y) / std::cos(shear_y);
  const double b = -(a * tan_x + std::sin(angle));
  const double c = std::sin(angle - shear_y) / std::cos(shear_y);
  const double d = std::cos(angle) - c * tan_x;
  AffineMatrix m = {d / p.scale, -b / p.scale, 0, -c / p.scale, a / p.scale, 0};
  const double from_x = p.center[0] + p.translate[0];
  const double from_y = p.center[1] + p.translate[1];
  m[2] = p.center[0] - m[0] * from_x - m[1] * from_y;
  m[5] = p.center[1] - m[3] * from_x - m[4] * from_y;
  return m;
}

void warp(const Pixels& image, const AffineMatrix& matrix, Interpolation interpolation,
          const std::array<std::uint8_t, 3>& fill, std::span<std::byte> scratch) {
  std::memcpy(scratch.data(), image.data, image.shape.values());
  const auto* const source = reinterpret_cast<const std::uint8_t*>(scratch.data());
  if (image.shape.channels == 1) {
    warp_rows<1>(image, matrix, interpolation, fill, source);
  } else {
    warp_rows<3>(image, matrix, interpolation, fill, source);
  }
}

}  // namespace precast::data
