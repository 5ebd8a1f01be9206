#pragma once

#include <cstddef>
#include <filesystem>
#include <map>
#include <span>
#include <string>

#include "framework/core/archive/tensor_record.h"
#include "framework/core/export.h"
#include "framework/core/file.h"

namespace precast {

/// The safetensors format (Hugging Face): 8 bytes of header length, a JSON header, raw tensors.
/// Such a file cannot contain code.
///
/// In files written by precast, the metadata also contains a digest (XXH3-64) of all names, types,
/// shapes, bytes and other metadata, under `precast_xxh3_64`. If the digest exists, reading checks
/// it, so that bit rot is detected. Other programs ignore the digest.

/// Writes atomically. The header keeps the order of `records`; the data is laid out with the widest
/// element type first, so that each tensor is aligned to its elements.
/// @throws IoError; CheckpointError for a duplicate name or a string that is not UTF-8.
PRECAST_API void write_safetensors(const std::filesystem::path& path,
                                   std::span<const TensorRecord> records,
                                   const std::map<std::string, std::string>& metadata = {},
                                   FileOps& ops = posix_file_ops());

/// Reads the records in the header's order, as views of `file`. Checks every size: a header of at
/// most 100 MB and at most a million tensors, whose bytes fill the rest of the file without gaps or
/// overlaps.
/// @param source names the file in messages. @throws CheckpointError
[[nodiscard]] PRECAST_API TensorArchive parse_safetensors(std::span<const std::byte> file,
                                                          const std::string& source);

}  // namespace precast
