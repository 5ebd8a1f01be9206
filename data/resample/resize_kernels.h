#pragma once

#include <cstddef>
#include <cstdint>

namespace precast::data {

/// The inner loops of AreaResizer, compiled for each SIMD level and chosen at run time (Highway).

/// out[i] = sum over t of weights[t] * rows[t][i], for i < count.
void weigh_rows(const std::uint8_t* const* rows, const float* weights, int taps, std::size_t count,
                float* out);

/// For each pixel d < pixels, channels c < 3: out[3d + c] = sum over t of
/// weights[d * taps + t] * in[3 * (starts[d] + t) + c]. Reads one float past the last tap's pixel
/// and writes one float past the last pixel.
void weigh_pixels(const float* in, const int* starts, const float* weights, int taps, int pixels,
                  float* out);

/// Rounds to nearest even and saturates to 0..255.
void round_to_u8(const float* in, std::size_t count, std::uint8_t* out);

}  // namespace precast::data
