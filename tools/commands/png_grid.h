#pragma once

#include <cstdint>
#include <filesystem>
#include <span>

namespace precast::tools {

/// Writes square images side by side, with as many per row as make the picture about square, and a
/// thin frame around each. Atomic. @param pixels [images, size_px, size_px, 3] uint8 RGB. @throws
/// IoError
void write_png_grid(const std::filesystem::path& path, std::span<const std::uint8_t> pixels,
                    int size_px);

}  // namespace precast::tools
