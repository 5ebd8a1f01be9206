#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <variant>
#include <vector>

#include "data/beton/dtype.h"
#include "data/image/image.h"

namespace precast::data {

/// An image as its source provides it: the bytes of an image file or, if `file` is empty, pixels.
struct ImageInput {
  std::vector<std::byte> file;
  Image pixels;
  /// The format that the file's name implies; `unknown` if it implies none. Used only to count
  /// mislabelled files.
  ImageFormat implied_format = ImageFormat::unknown;
};

/// An array with its elements in C order, as numpy's `tobytes()` returns them.
struct ArrayInput {
  ArrayFormat format;
  std::vector<std::byte> elements;
};

/// A value of a custom field: its metadata, and its large value if it has one. The writer
/// overwrites the metadata's pointer.
struct CustomInput {
  std::vector<std::byte> metadata;
  std::vector<std::byte> blob = {};
};

/// The value that a source provides for one field of one sample: a number, an image, bytes of any
/// length, a string, an array, or a value of a custom field.
using Value = std::variant<std::int64_t, double, ImageInput, std::vector<std::byte>, std::string,
                           ArrayInput, CustomInput>;

/// One sample that a source passes to the writer of a .beton file.
struct Sample {
  /// The sample's origin, for messages: a path, or a file and an index.
  std::string name;
  /// One per field, in the source's order.
  std::vector<Value> values;
};

}  // namespace precast::data
