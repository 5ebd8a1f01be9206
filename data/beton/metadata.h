#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "data/beton/bytes.h"
#include "data/beton/field_info.h"
#include "data/beton/format.h"
#include "framework/core/error.h"

namespace precast::data {

/// Limits that a file must meet to be accepted.
struct BetonLimits {
  /// By default FFCV's minimum. Tests with many small files may lower it.
  std::uint64_t min_page_bytes = kMinPageBytes;
};

/// The first part of a .beton file: header, field descriptors, and the metadata record of each
/// sample.
class BetonMetadata {
 public:
  /// Loads these parts, checks the header and the descriptors, and checks that descriptors, records
  /// and allocation table are inside the file, in this order. Keeps a pointer to the bytes of
  /// `file`. @throws DataError; ConfigError for wrong `options`.
  BetonMetadata(BetonBytes& file, const BetonLimits& limits, const BetonOptions& options);

  [[nodiscard]] const BetonHeader& header() const { return header_; }
  /// In file order.
  [[nodiscard]] const std::vector<FieldInfo>& fields() const { return fields_; }
  /// Number of samples.
  [[nodiscard]] std::uint64_t size() const { return header_.num_samples; }
  /// Offset of the records in the file.
  [[nodiscard]] std::uint64_t begin() const { return begin_; }
  [[nodiscard]] std::uint64_t end() const { return begin_ + header_.num_samples * record_bytes_; }

  /// Pointer to the metadata of one field of one sample.
  [[nodiscard]] const std::byte* record(std::uint64_t sample, std::size_t field) const {
    require(sample < header_.num_samples, "the sample exists");
    require(field < fields_.size(), "the field exists");
    return records_ + sample * record_bytes_ + fields_[field].offset;
  }
  /// The pointer to the value of a field that has a pointer.
  [[nodiscard]] std::uint64_t pointer(std::uint64_t sample, std::size_t field) const {
    const std::byte* at = record(sample, field);
    const auto pointer_at = fields_[field].layout.pointer_at;
    require(pointer_at.has_value(), "pointer() needs a field with a pointer");
    return load<std::uint64_t>(at + *pointer_at);
  }

 private:
  void check_extents(const BetonBytes& file) const;

  BetonHeader header_;
  std::vector<FieldInfo> fields_;
  std::uint64_t begin_ = 0;
  std::size_t record_bytes_ = 0;
  const std::byte* records_ = nullptr;
};

}  // namespace precast::data
