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

/// The list of a checkpoint's files, which detects a truncated, changed or missing file. It is
/// stored next to them as `manifest.json` and is written last: if it exists, all files of the list
/// exist.

inline constexpr std::string_view kManifestName = "manifest.json";
inline constexpr std::uint64_t kMaxManifestBytes = 1'000'000;
inline constexpr std::size_t kMaxManifestFiles = 4096;

/// The expected properties of a file.
struct ManifestFile {
  std::string name;
  std::uint64_t size_bytes = 0;
  /// XXH3-64 of its bytes, with seed 0.
  std::uint64_t xxh3_64 = 0;

  bool operator==(const ManifestFile&) const = default;
};

struct Manifest {
  /// Optimiser steps done, over all epochs; >= 0.
  std::int64_t step = 0;
  /// The figure by which checkpoints are compared, finite; none if nothing has been evaluated yet.
  std::optional<double> metric;
  std::vector<ManifestFile> files;

  bool operator==(const Manifest&) const = default;
};

/// True for at most 200 letters, digits, `.`, `_` and `-`, the first of which is not a dot, except
/// for `manifest.json` itself. Such a name cannot refer to a file outside its folder.
[[nodiscard]] PRECAST_API bool is_manifest_file_name(std::string_view name);

/// The manifest as JSON, with a digest of that JSON. @throws std::logic_error for names, numbers or
/// counts that parse_manifest() would reject.
[[nodiscard]] PRECAST_API std::string manifest_text(const Manifest& manifest);

/// Strict: one format version, no unknown or repeated key, plain and unique file names, at most
/// kMaxManifestBytes and kMaxManifestFiles, and the digest must match. A changed byte is therefore
/// an error, unless it changes no value. Deep nesting needs no memory. @param source names the file
/// in messages.
/// @throws CheckpointError, and nothing else but std::bad_alloc
[[nodiscard]] PRECAST_API Manifest parse_manifest(std::span<const std::byte> text,
                                                  const std::string& source);

/// The entry of a file that contains `bytes`.
[[nodiscard]] PRECAST_API ManifestFile describe_file(const std::string& name,
                                                     std::span<const std::byte> bytes);
/// The entry of `folder`/`name`, which is read in pieces. @throws IoError if it is missing, not a
/// regular file or unreadable.
[[nodiscard]] PRECAST_API ManifestFile describe_file(const std::filesystem::path& folder,
                                                     const std::string& name);

}  // namespace precast
