#include "framework/core/archive/pickle_reader.h"
#include "framework/core/error.h"
#include "tests/fuzz/targets.h"

namespace precast::fuzz {
namespace {

constexpr int kMaxDepth = 8;

void touch_text(std::string_view text) {
  touch(std::as_bytes(std::span(text.data(), text.size())));
}

/// Values may be shared and form cycles, so depth and number are limited.
void walk(const PickleValue& value, int depth, int& values_left) {
  if (depth > kMaxDepth || --values_left < 0) return;
  touch_text(value.text);
  require((value.storage != nullptr) == (value.kind == PickleValue::Kind::storage),
          "a value has a storage exactly if its kind is storage");
  require((value.tensor != nullptr) == (value.kind == PickleValue::Kind::tensor),
          "a value has a tensor exactly if its kind is tensor");
  if (value.storage) touch_text(value.storage->key);
  if (value.tensor) touch_text(value.tensor->storage.key);
  require(value.kind != PickleValue::Kind::dict || value.items.size() % 2 == 0,
          "a dict has a value for each key");
  static_cast<void>(value.find("state_dict"));
  for (const PickleValue* item : value.items) walk(*item, depth + 1, values_left);
}

}  // namespace

void pickle(Input input) {
  const Pickle read = parse_pickle(input, "input");
  int values_left = 1000;
  walk(*read.top, 0, values_left);
}

}  // namespace precast::fuzz
