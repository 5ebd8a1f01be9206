#pragma once

#include <cstddef>
#include <cstdint>
#include <unordered_map>
#include <vector>

#include "framework/core/archive/byte_reader.h"
#include "framework/core/archive/pickle_reader.h"

namespace precast {

/// The stack, the marks and the memo of a pickle that is being read. All three have limits, because
/// the pickle may be malicious. Errors are reported by ByteReader::fail(). Not thread-safe.
class PickleStack {
 public:
  /// Keeps references to both arguments. @param pickle receives the values
  PickleStack(const ByteReader& reader, Pickle& pickle) : reader_(reader), pickle_(pickle) {}

  /// Counts `values` more values towards a limit, which bounds the memory that a small pickle can
  /// request.
  void charge(std::size_t values);
  /// Pushes a new value, which the pickle owns.
  PickleValue& push(PickleValue::Kind kind);
  /// Pushes a value that the pickle already owns.
  void push_again(PickleValue* value) { values_.push_back(value); }
  /// Pops the top of the stack. Fails if there is no value above the last mark: the values below
  /// the mark belong to an unfinished container.
  PickleValue* pop();
  /// @param expected the kind in words, for the error
  PickleValue* pop(PickleValue::Kind kind, const char* expected);
  /// Pops the last `count` values, the deepest first.
  std::vector<PickleValue*> pop_many(std::size_t count);
  std::vector<PickleValue*> pop_to_mark();
  /// Pops the result after the last opcode. Fails if it is not the only value on the stack.
  PickleValue* pop_last();
  PickleValue& top();

  void mark() { marks_.push_back(values_.size()); }
  /// Stores the top of the stack in the memo under `index`.
  void remember(std::uint32_t index);
  /// Stores the top of the stack in the memo under the next free number.
  void remember_next() { remember(static_cast<std::uint32_t>(memo_.size())); }
  /// Pushes a value from the memo.
  void recall(std::uint32_t index);
  /// Fails if there are too many values or marks. Call it after each opcode.
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
