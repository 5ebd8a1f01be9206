#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <string>

#include "data/beton/reader.h"

namespace precast::tools {

/// Writes one field of a sample to a file:
/// - an image to .jpg, .png, .ppm or .npy; a stored JPEG is copied unchanged to .jpg;
/// - an array, pixels or a ragged value to .npy;
/// - bytes, or the data of a custom field, unchanged to a file with any extension;
/// - JSON, without its trailing zero byte, to a file with any extension.
/// @throws ConfigError for any other extension, for a field whose value is in the record, and if
/// `out` is the dataset itself; DataError, IoError
void export_field(const data::BetonReader& reader, std::uint64_t sample, std::size_t field,
                  const std::string& out);

/// Creates `folder`, and writes each field whose values are in pages to a file named after the
/// field, with `_` in place of `/`.
/// @throws ConfigError if two fields then have the same file name; the errors of export_field()
void export_sample(const data::BetonReader& reader, std::uint64_t sample,
                   const std::filesystem::path& folder);

}  // namespace precast::tools
