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

/// Files of Python's torch.save (`.pt`, `.pth`), without torch and without running a pickle.

/// The only metadata of these files: the model spec (weights_spec.h), as the zip entry
/// `extra/precast_spec`. torch.load ignores it.
inline constexpr std::string_view kTorchMetadataKey = "precast_spec";

/// Writes an OrderedDict of tensors that `torch.load(weights_only=True)` reads. Atomic; the same
/// records give the same bytes. @param metadata only the entry kTorchMetadataKey is written.
/// @throws IoError; CheckpointError for a duplicate name.
PRECAST_API void write_torch_zip(const std::filesystem::path& path,
                                 std::span<const TensorRecord> records,
                                 const std::map<std::string, std::string>& metadata = {},
                                 FileOps& ops = posix_file_ops());

/// True if `file` starts like any of the formats that torch.save writes.
[[nodiscard]] PRECAST_API bool looks_like_torch(std::span<const std::byte> file);

/// Reads the tensors of a state_dict, of any dict with text keys, or of a training checkpoint that
/// holds such a dict under `state_dict`, `model`, `model_state_dict`, `model_state`, `net`,
/// `network` or `weights`; other values are ignored. Records view `file` where a tensor is
/// contiguous; others (channels_last, transposed) are copied into `owned`, which never exceeds the
/// file's size. All storages are checked against their CRC.
/// @param source names the file in messages. @throws CheckpointError; for torch's formats before
/// 1.6 and for TorchScript its message says how to convert them.
[[nodiscard]] PRECAST_API TensorArchive parse_torch_zip(std::span<const std::byte> file,
                                                        const std::string& source);

}  // namespace precast
