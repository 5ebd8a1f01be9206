#pragma once

#include "data/write/field.h"

namespace precast::data {

/// A 64-bit integer in the metadata (FFCV's IntField).
class PRECAST_API IntField final : public Field {
 public:
  [[nodiscard]] FieldType type() const override { return FieldType::integer; }
  void encode(const Value& value, std::uint64_t sample, EncodedValue& out) override;
};

/// A 64-bit float in the metadata (FFCV's FloatField). Also accepts integers.
class PRECAST_API FloatField final : public Field {
 public:
  [[nodiscard]] FieldType type() const override { return FieldType::floating; }
  void encode(const Value& value, std::uint64_t sample, EncodedValue& out) override;
};

}  // namespace precast::data
