#pragma once

#include <cstddef>
#include <cstdint>
#include <unordered_map>
#include <vector>

#include "framework/core/archive/byte_reader.h"
#include "framework/core/archive/pickle_reader.h"

namespace precast {

/// Stack, marks and memo of a pickle that is being read. All three have limits, because a pickle is
/// not trusted. Errors are reported by ByteReader::fail(). Not thread-safe.
class PickleStack {
 public:
  /// Keeps references to both arguments. @param pickle gets the values
  PickleStack(const ByteReader& reader, Pickle& pickle) : reader_(reader), pickle_(pickle) {}

  /// Counts `values` more values towards their limit, which bounds the memory that a few bytes of
  /// pickle can request.
  void charge(std::size_t values);
  /// A new value, which the pickle owns.
  PickleValue& push(PickleValue::Kind kind);
  /// A value that the pickle already owns.
  void push_again(PickleValue* value) { values_.push_back(value); }
  /// Values below the last mark belong to an unfinished container and are not popped.
  PickleValue* pop();
  /// @param expected the kind in words
  PickleValue* pop(PickleValue::Kind kind, const char* expected);
  /// Pops the last `count` values, the deepest first.
  std::vector<PickleValue*> pop_many(std::size_t count);
  std::vector<PickleValue*> pop_to_mark();
  /// The single value left at the end.
  PickleValue* pop_last();
  PickleValue& top();

  void mark() { marks_.push_back(values_.size()); }
  /// Stores the top of the stack in the memo under that number, or under the next free one.
  void remember(std::uint32_t index);
  void remember_next() { remember(static_cast<std::uint32_t>(memo_.size())); }
  /// Pushes a value from the memo.
  void recall(std::uint32_t index);
  /// Call after each opcode.
  void check_limits() const;

 private:
  const ByteReader& reader_;
  Pickle& pickle_;
  std::size_t charged_ = 0;
  std::vector<PickleValue*> values_;
  std::vector<std::size_t> marks_;
  std::unordered_map<std::uint32_t, PickleValue*> memo_;
};

}  // namespace precast
