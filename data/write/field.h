#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "data/beton/format.h"
#include "data/write/sample.h"
#include "framework/core/export.h"

namespace precast::data {

/// Counts of events while a dataset is written, such as `jpg` or `resized`.
using Tally = std::map<std::string, std::uint64_t>;

/// One field of one sample, ready for the file.
struct EncodedValue {
  /// The value's part of the record, except the pointer to the blob, which the writer fills in.
  std::vector<std::byte> metadata;
  /// The bytes that go into a page; empty for numbers, and for empty values.
  std::vector<std::byte> blob;
};

/// Encodes the values of one field. Implementations keep scratch memory: use one object per thread.
/// The output of encode() depends only on its arguments, so that files do not depend on the number
/// of threads.
class PRECAST_API Field {
 public:
  virtual ~Field();
  [[nodiscard]] virtual FieldType type() const = 0;
  /// The arguments of the field's descriptor, after type and name: at most kFieldArgumentsBytes
  /// bytes.
  [[nodiscard]] virtual std::vector<std::byte> arguments() const { return {}; }
  /// @param sample the sample's position among all samples to be written, including damaged ones
  /// that are left out (CorruptPolicy::skip); part of the key of random choices.
  /// @param out overwritten; its memory is reused.
  /// @throws DataError if the value does not fit the field or an image cannot be decoded.
  virtual void encode(const Value& value, std::uint64_t sample, EncodedValue& out) = 0;
  /// The counts of this object so far.
  [[nodiscard]] const Tally& tally() const { return tally_; }

 protected:
  void count(const std::string& event) { ++tally_[event]; }

 private:
  Tally tally_;
};

}  // namespace precast::data
