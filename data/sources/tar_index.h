#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "framework/core/export.h"

namespace precast::data {

inline constexpr std::string_view kTarExtension = ".tar";

/// A file inside a tar archive.
struct TarMember {
  /// Relative, parts separated by `/`, without `.` and empty parts.
  std::string path;
  /// A view of the archive.
  std::span<const std::byte> bytes;
};

struct TarIndex {
  std::vector<TarMember> files;
  std::vector<std::string> folders;
};

/// Finds the files of an uncompressed archive in memory. Reads only the archive's headers, so the
/// contents of a mapped file are not loaded.
/// @param where names the archive in messages.
/// @param max_files stops after this number of files.
/// @throws DataError for a damaged or truncated archive, paths that lead out of it, and members
/// that are neither files nor folders.
[[nodiscard]] PRECAST_API TarIndex index_tar(std::span<const std::byte> archive,
                                             const std::string& where,
                                             std::size_t max_files = SIZE_MAX);

/// Replaces members that are archives themselves (ImageNet's train tar has one per class) with
/// their contents: `n01440764.tar` becomes a folder. @throws the errors of index_tar()
[[nodiscard]] PRECAST_API TarIndex open_inner_tars(TarIndex outer, const std::string& where);

}  // namespace precast::data
