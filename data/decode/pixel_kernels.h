#pragma once

#include <cstddef>
#include <cstdint>

#include "framework/core/export.h"

namespace precast::data {

/// The inner loops that remove stuffed zeros, upsample chroma and convert colours, compiled for
/// each SIMD level and chosen at run time (Highway). Their results are bitwise identical to those
/// of libjpeg-turbo (jdsample.c, jdcolor.c).

/// Number of bytes that a kernel may read and write past the last requested byte.
inline constexpr std::size_t kKernelSlack = 256;

/// Copies at most `count` bytes, up to the first 0xFF, which is not copied. Reads nothing after
/// `count` bytes, but may write up to 64 bytes after the copied ones. @return the number of copied
/// bytes.
std::size_t copy_until_ff(const std::uint8_t* in, std::size_t count, std::uint8_t* out);

/// "Fancy" vertical upsampling (h2v2), first half: 3 * near + far, for `count` chroma samples.
void blend_rows(const std::uint8_t* near, const std::uint8_t* far, std::size_t count,
                std::uint16_t* out);
/// Second half: each of `count` blended samples becomes two. Reads in[-1] and in[count].
void upsample_h2v2(const std::uint16_t* in, std::size_t count, std::uint8_t* out);
/// "Fancy" horizontal upsampling (h2v1): each of `count` samples becomes two. Reads in[-1] and
/// in[count], which at an image's edge must repeat the adjacent sample.
void upsample_h2v1(const std::uint8_t* in, std::size_t count, std::uint8_t* out);

/// [count] Y, Cb, Cr -> [count, 3] RGB (JFIF).
PRECAST_API void ycc_to_rgb(const std::uint8_t* y, const std::uint8_t* cb, const std::uint8_t* cr,
                            std::size_t count, std::uint8_t* out);
/// A row of each colour.
struct RgbRows {
  std::uint8_t* r = nullptr;
  std::uint8_t* g = nullptr;
  std::uint8_t* b = nullptr;
};

/// The same as ycc_to_rgb(), but writes one row per colour, [count] each.
PRECAST_API void ycc_to_planes(const std::uint8_t* y, const std::uint8_t* cb,
                               const std::uint8_t* cr, std::size_t count, const RgbRows& out);
/// [count] grey -> [count, 3] RGB.
void grey_to_rgb(const std::uint8_t* y, std::size_t count, std::uint8_t* out);

}  // namespace precast::data
