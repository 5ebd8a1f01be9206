#pragma once

#include <cstdint>
#include <filesystem>
#include <span>
#include <string>
#include <vector>

namespace precast::tools {

/// The lines of text under one image.
using Caption = std::vector<std::string>;

/// Writes square images side by side, with as many per row as needed to make the whole grid about
/// square, a thin frame around each, and its caption below. A line that is wider than the image (or
/// than 96 px, for smaller images) is truncated. Atomic.
/// @param pixels [images, size_px, size_px, 3] uint8 RGB. @param captions one per image, or none at
/// all. @throws IoError
void write_png_grid(const std::filesystem::path& path, std::span<const std::uint8_t> pixels,
                    int size_px, const std::vector<Caption>& captions = {});

}  // namespace precast::tools
