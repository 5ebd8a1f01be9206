#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <string>

#include "data/beton/reader.h"

namespace precast::tools {

/// Writes what one field of a sample holds into a file, as the ending of `out` says: an image into
/// .jpg, .png, .ppm or .npy (a JPEG into .jpg as it is stored), an array, pixels and what
/// is ragged into .npy; bytes and what a custom field points to as they are, and JSON without the
/// zero byte behind it, into any. @throws ConfigError for another ending, a field whose values are
/// in the metadata alone, and the dataset itself; DataError, IoError
void export_field(const data::BetonReader& reader, std::uint64_t sample, std::size_t field,
                  const std::string& out);

/// Writes a file for each field with values in pages, called like the field, into a folder, which
/// is made.
void export_sample(const data::BetonReader& reader, std::uint64_t sample,
                   const std::filesystem::path& folder);

}  // namespace precast::tools
