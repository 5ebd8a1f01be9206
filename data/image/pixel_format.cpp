#include "data/image/pixel_format.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "data/image/pixel_format.cpp"
#include <hwy/foreach_target.h>  // IWYU pragma: keep
#include <hwy/highway.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstring>

#include "data/image/normalize.h"
#include "framework/core/error.h"

HWY_BEFORE_NAMESPACE();
namespace precast::data::HWY_NAMESPACE {
namespace {

namespace hn = hwy::HWY_NAMESPACE;
using Formula = Normalize::Formula;

/// The vector code needs native instructions: Normalize has verified its formulas with fused
/// multiply-adds, and Highway's emulation of the conversion to half does not round to nearest.
#if HWY_NATIVE_FMA && (HWY_ARCH_X86 || HWY_ARCH_ARM_A64)

template <class D>
void store_rounded(D d, hn::Vec<D> values, float* out) {
  hn::StoreU(values, d, out);
}

struct Half {
  std::uint16_t bits;
};
template <class D>
void store_rounded(D d, hn::Vec<D> values, Half* out) {
  const hn::Rebind<hwy::float16_t, D> d_f16;
  hn::StoreU(hn::DemoteTo(d_f16, values), d_f16, reinterpret_cast<hwy::float16_t*>(out));
}

struct Bfloat16 {
  std::uint16_t bits;
};
template <class D>
void store_rounded(D d, hn::Vec<D> values, Bfloat16* out) {
  const hn::RebindToUnsigned<D> d_u32;
  const hn::RebindToSigned<D> d_i32;
  const hn::Rebind<std::uint16_t, D> d_u16;
  const auto bits = hn::BitCast(d_u32, values);
  const auto odd = hn::And(hn::ShiftRight<16>(bits), hn::Set(d_u32, 1));
  const auto rounded = hn::ShiftRight<16>(hn::Add(bits, hn::Add(odd, hn::Set(d_u32, 0x7FFF))));
  hn::StoreU(hn::DemoteTo(d_u16, hn::BitCast(d_i32, rounded)), d_u16,
             reinterpret_cast<std::uint16_t*>(out));
}

/// Converts three vectors, after which the constants repeat.
template <Formula kFormula, class D, typename Out>
HWY_INLINE void convert_three(D d, const std::uint8_t* in, const Normalize::Constants& constants,
                              Out* out) {
  const hn::Rebind<std::uint8_t, D> d_u8;
  const hn::RebindToSigned<D> d_i32;
  const std::size_t lanes = hn::Lanes(d);
  for (std::size_t at = 0; at < 3 * lanes; at += lanes) {
    const auto pixel = hn::ConvertTo(d, hn::PromoteTo(d_i32, hn::LoadU(d_u8, in + at)));
    if constexpr (kFormula == Formula::line) {
      store_rounded(d,
                    hn::MulAdd(pixel, hn::LoadU(d, constants.slope.data() + at),
                               hn::LoadU(d, constants.offset.data() + at)),
                    out + at);
    } else {
      const auto std = hn::LoadU(d, constants.std.data() + at);
      const auto reciprocal = hn::LoadU(d, constants.reciprocal.data() + at);
      const auto difference = hn::Sub(pixel, hn::LoadU(d, constants.mean.data() + at));
      const auto guess = hn::Mul(difference, reciprocal);
      const auto remainder = hn::NegMulAdd(guess, std, difference);
      store_rounded(d, hn::MulAdd(remainder, reciprocal, guess), out + at);
    }
  }
}

/// @return the number of values converted: `count`, or 0 if `count` is less than one step.
template <Formula kFormula, typename Out>
std::size_t convert_vectors(const std::uint8_t* in, std::size_t count,
                            const Normalize::Constants& constants, Out* out) {
  const hn::CappedTag<float, Normalize::kLanes / 3> d;
  const std::size_t step = 3 * hn::Lanes(d);
  if (count < step) return 0;
  std::size_t i = 0;
  for (; i + step <= count; i += step) convert_three<kFormula>(d, in + i, constants, out + i);
  // Convert the remaining values in one step that ends at `count`; its first values are converted
  // again. For interleaved channels, `count` and `step` are multiples of 3, so the constants still
  // match.
  if (i < count) convert_three<kFormula>(d, in + count - step, constants, out + count - step);
  return count;
}

template <typename Out>
std::size_t convert_vectors(const std::uint8_t* in, std::size_t count, Formula formula,
                            const Normalize::Constants& constants, Out* out) {
  if (formula == Formula::line) return convert_vectors<Formula::line>(in, count, constants, out);
  if (formula == Formula::table) return 0;
  return convert_vectors<Formula::quotient>(in, count, constants, out);
}

#else

using Half = std::uint16_t;
using Bfloat16 = std::uint16_t;
template <typename Out>
std::size_t convert_vectors(const std::uint8_t*, std::size_t, Formula, const Normalize::Constants&,
                            Out*) {
  return 0;
}

#endif

/// @param channel the channel of all values, or 3 for interleaved channels.
template <typename VectorOut, typename T>
void convert(const std::uint8_t* in, std::size_t count, const Normalize& normalize,
             std::size_t channel, const Normalize::Table<T>& table, Formula formula, T* out) {
  const Normalize::Constants& constants =
      channel == 3 ? normalize.interleaved() : normalize.channel(channel);
  if (convert_vectors(in, count, formula, constants, reinterpret_cast<VectorOut*>(out)) == count) {
    return;
  }
  for (std::size_t i = 0; i < count; ++i) {
    out[i] = table[channel == 3 ? i % 3 : channel][in[i]];
  }
}

void convert_values(const std::uint8_t* in, std::size_t count, const Normalize& normalize,
                    std::size_t channel, ElementType type, std::byte* out) {
  switch (type) {
    case ElementType::f32:
      return convert<float>(in, count, normalize, channel, normalize.f32(), normalize.f32_formula(),
                            reinterpret_cast<float*>(out));
    case ElementType::f16:
      return convert<Half>(in, count, normalize, channel, normalize.f16(), normalize.f16_formula(),
                           reinterpret_cast<std::uint16_t*>(out));
    case ElementType::bf16:
      return convert<Bfloat16>(in, count, normalize, channel, normalize.bf16(),
                               normalize.bf16_formula(), reinterpret_cast<std::uint16_t*>(out));
    default:
      std::memcpy(out, in, count);
  }
}

/// Splits pixels into one plane per channel.
void split_channels(const std::uint8_t* in, std::size_t pixels, std::uint8_t* const* planes) {
  const hn::ScalableTag<std::uint8_t> d;
  const std::size_t lanes = hn::Lanes(d);
  std::size_t p = 0;
  for (; p + lanes <= pixels; p += lanes) {
    hn::Vec<decltype(d)> red, green, blue;
    hn::LoadInterleaved3(d, in + 3 * p, red, green, blue);
    hn::StoreU(red, d, planes[0] + p);
    hn::StoreU(green, d, planes[1] + p);
    hn::StoreU(blue, d, planes[2] + p);
  }
  for (; p < pixels; ++p) {
    for (std::size_t c = 0; c < 3; ++c) planes[c][p] = in[3 * p + c];
  }
}

}  // namespace
}  // namespace precast::data::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace precast::data {
namespace {

HWY_EXPORT(convert_values);
HWY_EXPORT(split_channels);

/// Number of pixels that are split at a time, so that they stay in the first-level cache.
constexpr std::size_t kPiece = 512;

void write_planes(const std::uint8_t* row, std::size_t width, std::size_t plane_bytes,
                  const Normalize& normalize, ElementType type, std::byte* out) {
  std::array<std::array<std::uint8_t, kPiece>, 3> pieces;
  const std::size_t size = element_size(type);
  for (std::size_t x = 0; x < width; x += kPiece) {
    const std::size_t count = std::min(kPiece, width - x);
    std::array<std::uint8_t*, 3> planes;
    for (std::size_t c = 0; c < 3; ++c) {
      planes[c] = type == ElementType::u8
                      ? reinterpret_cast<std::uint8_t*>(out) + c * plane_bytes + x
                      : pieces[c].data();
    }
    HWY_DYNAMIC_DISPATCH(split_channels)(row + 3 * x, count, planes.data());
    for (std::size_t c = 0; c < 3 && type != ElementType::u8; ++c) {
      HWY_DYNAMIC_DISPATCH(convert_values)
      (planes[c], count, normalize, c, type, out + c * plane_bytes + x * size);
    }
  }
}

}  // namespace

void write_rows(const ImageView& rows, int first_row, int height, const PixelFormat& format,
                std::byte* out) {
  require(format.type == ElementType::u8 || format.type == ElementType::f32 ||
              format.type == ElementType::f16 || format.type == ElementType::bf16,
          "pixels are converted to u8, f32, f16 or bf16");
  require(format.channels == 3 || format.channels == 1, "pixels have 3 channels or 1");
  const Normalize& normalize =
      format.normalize == nullptr ? Normalize::identity() : *format.normalize;
  const auto width = static_cast<std::size_t>(rows.width);
  const bool planar = format.channels_first && format.channels == 3;
  const std::size_t row_bytes = format.image_bytes(1, rows.width) / (planar ? 3 : 1);
  std::byte* row_out = out + static_cast<std::size_t>(first_row) * row_bytes;
  for (int y = 0; y < rows.height; ++y, row_out += row_bytes) {
    if (planar) {
      write_planes(rows.row(y), width, row_bytes * static_cast<std::size_t>(height), normalize,
                   format.type, row_out);
    } else {
      // Channel 3 stands for three interleaved channels.
      const bool grey = format.channels == 1;
      HWY_DYNAMIC_DISPATCH(convert_values)
      (rows.row(y), grey ? width : width * 3, normalize, grey ? 0 : 3, format.type, row_out);
    }
  }
}

void write_pixels(const ImageView& image, const PixelFormat& format, std::byte* out) {
  write_rows(image, 0, image.height, format, out);
}

}  // namespace precast::data
#endif  // HWY_ONCE
