#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <variant>
#include <vector>

#include "data/beton/dtype.h"
#include "data/image/image.h"

namespace precast::data {

/// A picture as its source has it: the bytes of an image file or, where `file` is empty, pixels.
struct ImageInput {
  std::vector<std::byte> file;
  Image pixels;
  /// What the file's name promises; `unknown` where it has none. Counted, and ignored.
  ImageFormat promised = ImageFormat::unknown;
};

/// An array as numpy's `tobytes()` gives it: elements in C order.
struct ArrayInput {
  ArrayFormat format;
  std::vector<std::byte> elements;
};

/// A value of a custom field: its metadata, and its large value if it has one. What stands in the
/// metadata in the place of the pointer is the writer's.
struct CustomInput {
  std::vector<std::byte> metadata;
  std::vector<std::byte> blob = {};
};

/// What a source gives for one field of one sample: a number, a picture, bytes of any number, a
/// text, an array, something of a kind that only a plug-in knows.
using Value = std::variant<std::int64_t, double, ImageInput, std::vector<std::byte>, std::string,
                           ArrayInput, CustomInput>;

/// One sample on its way from a source into a .beton file.
struct Sample {
  /// Where it comes from, for messages: a path, or a file and an index.
  std::string name;
  /// One a field, in the source's order.
  std::vector<Value> values;
};

}  // namespace precast::data
