#pragma once

#include <cstdint>
#include <filesystem>
#include <span>
#include <string>
#include <vector>

namespace precast::tools {

/// The lines of text under one image.
using Caption = std::vector<std::string>;

/// Writes square images as a grid with about as many rows as columns, each image with a thin frame
/// around it and its caption below. Caption lines that are wider than the image (or than 96 px, for
/// smaller images) are truncated. The file is written atomically.
/// @param pixels [images, size_px, size_px, 3] uint8 RGB. @param captions one per image, or none at
/// all. @throws IoError
void write_png_grid(const std::filesystem::path& path, std::span<const std::uint8_t> pixels,
                    int size_px, const std::vector<Caption>& captions = {});

}  // namespace precast::tools
