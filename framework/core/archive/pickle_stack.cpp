#include "framework/core/archive/pickle_stack.h"

#include <fmt/format.h>

namespace precast {
namespace {

constexpr std::size_t kMaxPickleValues = 2'000'000;
constexpr std::size_t kMaxStacked = 1'000'000;
constexpr std::size_t kMaxMarks = 1'000;

}  // namespace

void PickleStack::charge(std::size_t values) {
  charged_ += values;
  if (charged_ > kMaxPickleValues)
    reader_.fail(fmt::format("pickle: expected at most {} values, got more", kMaxPickleValues));
}

PickleValue& PickleStack::push(PickleValue::Kind kind) {
  charge(1);
  PickleValue& value = pickle_.values.emplace_back();
  value.kind = kind;
  values_.push_back(&value);
  return value;
}

PickleValue* PickleStack::pop() {
  if (values_.size() <= (marks_.empty() ? 0 : marks_.back()))
    reader_.fail("pickle: expected a value, got an empty stack");
  PickleValue* value = values_.back();
  values_.pop_back();
  return value;
}

PickleValue* PickleStack::pop(PickleValue::Kind kind, const char* expected) {
  PickleValue* value = pop();
  if (value->kind != kind)
    reader_.fail(fmt::format("pickle: expected {}, got a different value", expected));
  return value;
}

std::vector<PickleValue*> PickleStack::pop_many(std::size_t count) {
  std::vector<PickleValue*> items(count);
  while (count > 0) items[--count] = pop();
  return items;
}

std::vector<PickleValue*> PickleStack::pop_to_mark() {
  if (marks_.empty()) reader_.fail("pickle: expected a mark, got none");
  const auto first = values_.begin() + static_cast<std::ptrdiff_t>(marks_.back());
  std::vector<PickleValue*> items(first, values_.end());
  values_.erase(first, values_.end());
  marks_.pop_back();
  return items;
}

PickleValue* PickleStack::pop_last() {
  PickleValue* value = pop();
  if (!values_.empty() || !marks_.empty())
    reader_.fail("pickle: expected one value at the end, got more");
  return value;
}

PickleValue& PickleStack::top() {
  PickleValue* value = pop();
  values_.push_back(value);
  return *value;
}

void PickleStack::remember(std::uint32_t index) {
  if (index >= kMaxPickleValues)
    reader_.fail(
        fmt::format("pickle: expected a memo index below {}, got {}", kMaxPickleValues, index));
  memo_[index] = &top();
}

void PickleStack::recall(std::uint32_t index) {
  const auto found = memo_.find(index);
  if (found == memo_.end())
    reader_.fail(fmt::format("pickle: expected a memo index that was set, got {}", index));
  values_.push_back(found->second);
}

void PickleStack::check_limits() const {
  if (values_.size() > kMaxStacked || marks_.size() > kMaxMarks)
    reader_.fail(
        fmt::format("pickle: expected a stack of at most {} values and {} marks, got {} and {}",
                    kMaxStacked, kMaxMarks, values_.size(), marks_.size()));
}

}  // namespace precast
