#pragma once

#include <cstdint>
#include <filesystem>
#include <span>

namespace precast::tools {

/// Writes an image atomically. @param pixels [height, width, 3] uint8 RGB. @throws IoError
void write_png(const std::filesystem::path& path, std::span<const std::uint8_t> pixels,
               std::uint32_t height, std::uint32_t width);

}  // namespace precast::tools
