#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "framework/core/archive/tensor_record.h"
#include "framework/core/export.h"
#include "framework/core/file.h"

namespace precast {

enum class WeightsFormat : std::uint8_t { safetensors, torch };

/// What to do with the prefixes `module.` and `_orig_mod.`, which DistributedDataParallel and
/// torch.compile add to names.
enum class WrapperPrefixes : std::uint8_t {
  /// Removes the prefixes, except in a file with a model spec: precast wrote that file without such
  /// prefixes, so `module` is one of the model's own modules.
  strip,
  /// Leaves all names unchanged. For the files of precast's checkpoints, some of which have no
  /// model spec.
  keep,
};

/// An open weights file. Its records view the mapped file and live as long as this object.
/// Move-only. Reading is thread-safe.
class PRECAST_API WeightsFile {
 public:
  /// The records in the file's order.
  [[nodiscard]] const std::vector<TensorRecord>& records() const { return archive_.records; }
  /// The record called `name`; null if there is none.
  [[nodiscard]] const TensorRecord* find(std::string_view name) const;
  /// The metadata of a safetensors file; for a torch file, only the model spec.
  [[nodiscard]] const std::map<std::string, std::string>& metadata() const {
    return archive_.metadata;
  }
  /// The key of the averaged weights that a torch file contains besides these records, such as
  /// timm's `state_dict_ema`; empty if there are none.
  [[nodiscard]] const std::string& averages_key() const { return archive_.averages_key; }
  /// The key of these records in a file with averages_key(); empty if they are at the top level.
  [[nodiscard]] const std::string& weights_key() const { return archive_.weights_key; }
  [[nodiscard]] WeightsFormat format() const { return format_; }
  [[nodiscard]] const std::filesystem::path& path() const { return file_->path(); }

 private:
  friend PRECAST_API WeightsFile load_weights(const std::filesystem::path& path,
                                              WrapperPrefixes prefixes);
  WeightsFile(std::unique_ptr<MappedFile> file, TensorArchive archive, WeightsFormat format);

  std::unique_ptr<MappedFile> file_;
  TensorArchive archive_;
  WeightsFormat format_;
};

/// Opens a safetensors or torch file; recognises the format by the content. Never executes code
/// from a file.
/// @throws IoError if the file cannot be read; CheckpointError naming the file if it has a
/// different format, is truncated or is damaged.
[[nodiscard]] PRECAST_API WeightsFile
load_weights(const std::filesystem::path& path, WrapperPrefixes prefixes = WrapperPrefixes::strip);

/// Whether the name starts with a prefix that load_weights() strips.
[[nodiscard]] PRECAST_API bool has_wrapper_prefix(std::string_view name);

/// Writes the format that belongs to the extension: `.safetensors`, or `.pt` and `.pth` (in which
/// the model spec is the only metadata, see torch_zip.h). Atomic. @throws IoError; CheckpointError
/// for any other extension or a duplicate name.
PRECAST_API void save_weights(const std::filesystem::path& path,
                              std::span<const TensorRecord> records,
                              const std::map<std::string, std::string>& metadata = {},
                              FileOps& ops = posix_file_ops());

}  // namespace precast
