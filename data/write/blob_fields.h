#pragma once

#include "data/beton/dtype.h"
#include "data/write/field.h"

namespace precast::data {

/// Any number of bytes, including none (FFCV's BytesField). Accepts bytes and strings.
class PRECAST_API BytesField final : public Field {
 public:
  [[nodiscard]] FieldType type() const override { return FieldType::bytes; }
  void encode(const Value& value, std::uint64_t sample, EncodedValue& out) override;
};

/// A JSON document (FFCV's JSONField), stored unchanged and followed by a zero byte. Accepts
/// strings and bytes that parse as JSON, and finite numbers.
class PRECAST_API JsonField final : public Field {
 public:
  [[nodiscard]] FieldType type() const override { return FieldType::json; }
  void encode(const Value& value, std::uint64_t sample, EncodedValue& out) override;
};

/// Arrays of one shape and element type (FFCV's NDArrayField and TorchTensorField, which differ
/// only in their type). Accepts only arrays of that format.
class PRECAST_API ArrayField final : public Field {
 public:
  /// @param type ndarray or tensor. @throws ConfigError for a format that array_bytes() rejects.
  ArrayField(FieldType type, ArrayFormat format);
  [[nodiscard]] FieldType type() const override { return type_; }
  [[nodiscard]] std::vector<std::byte> arguments() const override { return arguments_; }
  void encode(const Value& value, std::uint64_t sample, EncodedValue& out) override;

 private:
  FieldType type_;
  ArrayFormat format_;
  std::vector<std::byte> arguments_;
};

}  // namespace precast::data
