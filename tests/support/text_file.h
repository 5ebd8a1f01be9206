#pragma once

#include <filesystem>
#include <string>

namespace precast::test {

/// All bytes of a file; empty if it cannot be read.
[[nodiscard]] std::string read_text(const std::filesystem::path& path);

}  // namespace precast::test
