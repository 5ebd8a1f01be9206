#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "framework/core/export.h"

namespace precast {

inline constexpr std::string_view kManifestName = "manifest.json";
inline constexpr std::uint64_t kMaxManifestBytes = 1'000'000;
inline constexpr std::size_t kMaxManifestFiles = 4096;

/// A file with its expected size and hash.
struct ManifestFile {
  std::string name;
  std::uint64_t size_bytes = 0;
  /// XXH3-64 of its bytes, with seed 0.
  std::uint64_t xxh3_64 = 0;

  bool operator==(const ManifestFile&) const = default;
};

/// The list of a checkpoint's files, used to detect truncated, changed and missing files. It is
/// stored next to the files as `manifest.json` and written last, so its presence means that all the
/// files had been written.
struct Manifest {
  /// Optimiser steps done, over all epochs; >= 0.
  std::int64_t step = 0;
  /// The value of the metric by which checkpoints are compared. Empty if the weights were not
  /// evaluated, or if the value was NaN or infinite.
  std::optional<double> metric;
  std::vector<ManifestFile> files;

  bool operator==(const Manifest&) const = default;
};

/// Whether the name consists of 1 to 200 letters, digits, `.`, `_` and `-`, does not start with a
/// dot, and is not `manifest.json`. Such a name cannot refer to a file outside its folder.
[[nodiscard]] PRECAST_API bool is_manifest_file_name(std::string_view name);

/// The manifest as JSON, with a digest of its values. @throws std::logic_error for names, numbers
/// or counts that parse_manifest() would reject.
[[nodiscard]] PRECAST_API std::string manifest_text(const Manifest& manifest);

/// Parses a manifest strictly: one format version, no unknown or repeated key, plain and unique
/// file names, at most kMaxManifestBytes and kMaxManifestFiles, and a matching digest. Every
/// changed byte that affects a value is therefore detected. Deep nesting is rejected before it
/// needs memory. @param source names the file in messages.
/// @throws CheckpointError, and nothing else but std::bad_alloc
[[nodiscard]] PRECAST_API Manifest parse_manifest(std::span<const std::byte> text,
                                                  const std::string& source);

/// The manifest's entry for a file that contains `bytes`.
[[nodiscard]] PRECAST_API ManifestFile describe_file(const std::string& name,
                                                     std::span<const std::byte> bytes);
/// The manifest's entry for `folder`/`name`, which is read in pieces. @throws IoError if the file
/// is missing, not a regular file or unreadable.
[[nodiscard]] PRECAST_API ManifestFile describe_file(const std::filesystem::path& folder,
                                                     const std::string& name);

}  // namespace precast
