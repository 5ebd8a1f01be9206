#include "framework/core/archive/tensor_record.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <array>
#include <bit>

#include "framework/core/error.h"

namespace precast {
namespace {

static_assert(std::endian::native == std::endian::little,
              "weights files are little-endian and are used without conversion");

constexpr std::array kInfos = {
    DTypeInfo{DType::f64, 8, "float64", "F64", "DoubleStorage", "<f8"},
    DTypeInfo{DType::f32, 4, "float32", "F32", "FloatStorage", "<f4"},
    DTypeInfo{DType::f16, 2, "float16", "F16", "HalfStorage", "<f2"},
    DTypeInfo{DType::bf16, 2, "bfloat16", "BF16", "BFloat16Storage", ""},
    DTypeInfo{DType::i64, 8, "int64", "I64", "LongStorage", "<i8"},
    DTypeInfo{DType::i32, 4, "int32", "I32", "IntStorage", "<i4"},
    DTypeInfo{DType::i16, 2, "int16", "I16", "ShortStorage", "<i2"},
    DTypeInfo{DType::i8, 1, "int8", "I8", "CharStorage", "|i1"},
    DTypeInfo{DType::u8, 1, "uint8", "U8", "ByteStorage", "|u1"},
    DTypeInfo{DType::boolean, 1, "bool", "BOOL", "BoolStorage", "|b1"},
};

}  // namespace

const DTypeInfo& dtype_info(DType dtype) {
  for (const DTypeInfo& info : kInfos) {
    if (info.dtype == dtype) return info;
  }
  require(false, "a DType is one of its enumerators");
  return kInfos[0];
}

std::optional<DType> find_dtype(std::string_view DTypeInfo::*column, std::string_view name) {
  if (name.empty()) return std::nullopt;
  for (const DTypeInfo& info : kInfos) {
    if (info.*column == name) return info.dtype;
  }
  return std::nullopt;
}

std::optional<std::uint64_t> element_count(std::span<const std::int64_t> shape) {
  std::int64_t count = 1;
  for (const std::int64_t size : shape) {
    if (size < 0 || __builtin_mul_overflow(count, size, &count)) return std::nullopt;
  }
  return static_cast<std::uint64_t>(count);
}

std::optional<std::uint64_t> byte_count(DType dtype, std::span<const std::int64_t> shape) {
  const auto elements = element_count(shape);
  std::uint64_t bytes = 0;
  if (!elements || __builtin_mul_overflow(*elements, dtype_info(dtype).size_bytes, &bytes) ||
      bytes > INT64_MAX) {
    return std::nullopt;
  }
  return bytes;
}

std::string repeated_name_text(std::string_view where, std::string_view name) {
  return fmt::format("{}: expected each tensor name once, got '{}' twice", where, name);
}

std::string shape_text(std::span<const std::int64_t> shape) {
  return fmt::format("[{}]", fmt::join(shape, ", "));
}

}  // namespace precast
