#pragma once

#include <filesystem>

namespace precast::tools {

/// Asks the kernel to drop a file from the page cache. Pages that a process has mapped, and files
/// in a tmpfs, stay in memory. @throws IoError if the file cannot be opened.
void drop_from_page_cache(const std::filesystem::path& path);

/// Returns the share of a file that is in the page cache, 0 to 1. For a file that the caller
/// neither owns nor may write, Linux always reports 1. @throws IoError if it cannot be opened or
/// mapped.
[[nodiscard]] double cached_share(const std::filesystem::path& path);

}  // namespace precast::tools
