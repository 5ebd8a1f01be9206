#pragma once

#include <cstddef>
#include <filesystem>
#include <map>
#include <span>
#include <string>
#include <string_view>

#include "framework/core/archive/tensor_record.h"
#include "framework/core/export.h"
#include "framework/core/file.h"

namespace precast {

/// Reads and writes files of Python's torch.save (`.pt`, `.pth`), without torch and without
/// executing a pickle.

/// The key of the only metadata in these files: the model spec (weights_spec.h), stored as the zip
/// entry `extra/precast_spec`, which torch.load ignores.
inline constexpr std::string_view kTorchMetadataKey = "precast_spec";

/// Writes an OrderedDict of tensors that `torch.load(weights_only=True)` can read. Atomic. Equal
/// records produce identical files. @param metadata only the entry with the key kTorchMetadataKey
/// is written.
/// @throws IoError; CheckpointError for a duplicate name.
PRECAST_API void write_torch_zip(const std::filesystem::path& path,
                                 std::span<const TensorRecord> records,
                                 const std::map<std::string, std::string>& metadata = {},
                                 FileOps& ops = posix_file_ops());

/// True if `file` starts like any of the formats that torch.save writes.
[[nodiscard]] PRECAST_API bool looks_like_torch(std::span<const std::byte> file);

/// Reads the tensors of a state_dict, of any dict with string keys, or of a training checkpoint
/// that contains such a dict under `state_dict`, `model`, `model_state_dict`, `model_state`, `net`,
/// `network` or `weights`; other values are ignored, but TensorArchive::averages_key names the
/// averaged weights under `state_dict_ema` (timm) or `model_ema` (torchvision). Records of
/// contiguous tensors view `file`; other tensors (channels_last, transposed) are copied into
/// `owned`, which never exceeds the file's size. The CRC of every storage that has one is checked
/// (ZipReader::read()).
/// @param source names the file in messages. @throws CheckpointError. For files of torch before 1.6
/// and for TorchScript archives, the message says how to convert the file.
[[nodiscard]] PRECAST_API TensorArchive parse_torch_zip(std::span<const std::byte> file,
                                                        const std::string& source);

}  // namespace precast
