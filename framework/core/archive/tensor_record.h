#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "framework/core/export.h"

namespace precast {

/// The element types of weights files.
enum class DType : std::uint8_t { f64, f32, f16, bf16, i64, i32, i16, i8, u8, boolean };
/// Files with a tensor of more dimensions are rejected.
inline constexpr std::size_t kMaxTensorDimensions = 64;

/// An element type and its names in other formats. A name is empty if the format does not have the
/// type.
struct DTypeInfo {
  DType dtype;
  std::size_t size_bytes;
  /// `float32`
  std::string_view name;
  /// `F32`
  std::string_view safetensors;
  /// `FloatStorage`
  std::string_view torch_storage;
  /// `<f4`
  std::string_view numpy;
};

[[nodiscard]] PRECAST_API const DTypeInfo& dtype_info(DType dtype);
/// `find_dtype(&DTypeInfo::safetensors, "F32")`.
[[nodiscard]] PRECAST_API std::optional<DType> find_dtype(std::string_view DTypeInfo::*column,
                                                          std::string_view name);

/// Number of elements of `shape` (1 for a scalar, `[]`); nothing if a size is negative or the
/// product does not fit into 63 bits.
[[nodiscard]] PRECAST_API std::optional<std::uint64_t> element_count(
    std::span<const std::int64_t> shape);
/// The size in bytes of a tensor of this shape; nothing if a size in the shape is negative or the
/// result does not fit into 63 bits.
[[nodiscard]] PRECAST_API std::optional<std::uint64_t> byte_count(
    DType dtype, std::span<const std::int64_t> shape);
/// The message about a name that occurs twice. @param where the file or the owner of the tensors
[[nodiscard]] PRECAST_API std::string repeated_name_text(std::string_view where,
                                                         std::string_view name);
/// `[64, 3, 7, 7]`
[[nodiscard]] PRECAST_API std::string shape_text(std::span<const std::int64_t> shape);

/// A named tensor that does not own its bytes: contiguous, C order, little-endian.
struct TensorRecord {
  std::string name;
  DType dtype = DType::f32;
  std::vector<std::int64_t> shape;
  std::span<const std::byte> bytes;
};

/// The tensors of a weights file. Records view the file's bytes, or `owned` if a tensor had to be
/// made contiguous. Move-only, because the records of a copy would view the original's memory.
struct TensorArchive {
  std::vector<TensorRecord> records;
  std::map<std::string, std::string> metadata;
  std::vector<std::vector<std::byte>> owned;
  /// If the file is a training checkpoint with averages of the weights besides these tensors: the
  /// key of the averages, and the key of these tensors, which is empty if they are at the top
  /// level. Otherwise both are empty.
  std::string averages_key = {}, weights_key = {};

  TensorArchive() = default;
  TensorArchive(const TensorArchive&) = delete;
  TensorArchive& operator=(const TensorArchive&) = delete;
  TensorArchive(TensorArchive&&) noexcept = default;
  TensorArchive& operator=(TensorArchive&&) noexcept = default;
  ~TensorArchive() = default;
};

}  // namespace precast
