#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <variant>
#include <vector>

#include "data/image.h"

namespace precast::data {

/// A picture as its source has it: the bytes of an image file or, where `file` is empty, pixels.
struct ImageInput {
  std::vector<std::byte> file;
  Image pixels;
};

/// What a source gives for one field of one sample.
using Value = std::variant<std::int64_t, double, ImageInput>;

/// One sample on its way from a source into a .beton file.
struct Sample {
  /// Where it comes from, for messages: a path, or a file and an index.
  std::string name;
  /// One a field, in the source's order.
  std::vector<Value> values;
};

}  // namespace precast::data
