#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <string>

#include "data/beton/reader.h"

namespace precast::tools {

/// Writes one field of a sample to a file in the format of `out`'s extension: an image to .jpg,
/// .png, .ppm or .npy (a JPEG to .jpg as it is stored); an array, pixels and ragged values to .npy;
/// with any extension, bytes and the data of a custom field unchanged, and JSON without its
/// trailing zero byte. @throws ConfigError for another extension, a field whose values are only in
/// the metadata, and if `out` is the dataset itself; DataError, IoError
void export_field(const data::BetonReader& reader, std::uint64_t sample, std::size_t field,
                  const std::string& out);

/// Writes a file for each field with values in pages, named after the field, into a folder, which
/// is created.
void export_sample(const data::BetonReader& reader, std::uint64_t sample,
                   const std::filesystem::path& folder);

}  // namespace precast::tools
