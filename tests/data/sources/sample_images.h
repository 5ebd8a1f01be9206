#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "data/image/image.h"

struct jpeg_compress_struct;

namespace precast::test {

/// A smooth image that depends on `seed`.
data::Image gradient(int height, int width, int seed = 0);

/// Encodes samples [height, width, channels] as a JPEG file. The quality is 75, unless `configure`,
/// which is called last, changes it.
std::vector<std::byte> encode_jpeg(std::vector<unsigned char> samples, int height, int width,
                                   int channels,
                                   const std::function<void(jpeg_compress_struct&)>& configure);

/// The colour space or the form of a JPEG file.
enum class JpegKind { rgb, grey, cmyk, progressive, three_scans };
/// A JPEG of quality 95. three_scans: a baseline JPEG with one scan per colour component. cmyk: the
/// image's three channels and 255, stored as they are; since Adobe stores inks inverted, they
/// decode to the image's colours without black.
std::vector<std::byte> jpeg_file(const data::Image& image, JpegKind kind = JpegKind::rgb);

/// A PNG file with 8 bits per channel. @param channels 1 grey, 2 grey and alpha, 3 RGB, 4 RGB and
/// alpha; alpha is 255 (opaque).
std::vector<std::byte> png_file(const data::Image& image, int channels = 3);

/// Writes a file and creates its parent folders.
void put_file(const std::filesystem::path& path, const std::vector<std::byte>& bytes);

/// A small tree: 3 classes, 7 JPEG and 2 PNG files, a nested folder, one text file.
void make_class_tree(const std::filesystem::path& root);

/// Packs the contents of `root` into a tar, in directory order. The names of the members are
/// `prefix` + relative path.
void make_tar(const std::filesystem::path& tar, const std::filesystem::path& root,
              const std::string& prefix);

}  // namespace precast::test
