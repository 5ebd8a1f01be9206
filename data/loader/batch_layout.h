#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "data/beton/field_info.h"
#include "data/loader/host_batch.h"

namespace precast::data {

class BetonReader;

/// How one field of the file comes out in a batch.
struct OutputField {
  std::size_t field = 0;
  std::string name;
  FieldType kind = FieldType::integer;
  ElementType type = ElementType::i64;
  /// Of one sample: [H, W, 3] for an image, nothing for a number.
  std::vector<std::int64_t> shape = {};
  /// Where the field starts in a batch's memory, and the bytes of one sample there.
  std::size_t offset = 0;
  std::size_t sample_bytes = 0;
};

/// Where everything lies in the memory of one pass's batches. Const, thread-safe.
class BatchLayout {
 public:
  /// @param image_type what images come out as.
  BatchLayout(const BetonReader& reader, std::int64_t batch_size, std::int64_t image_size_px,
              ElementType image_type);

  [[nodiscard]] const std::vector<OutputField>& fields() const { return fields_; }
  /// Memory that a batch takes.
  [[nodiscard]] std::size_t bytes() const { return bytes_; }
  /// The first `count` samples in `memory` as tensors.
  [[nodiscard]] std::vector<HostTensor> describe(std::byte* memory, std::int64_t count) const;

 private:
  std::vector<OutputField> fields_;
  std::size_t bytes_ = 0;
};

}  // namespace precast::data
