#include "data/sources/idx.h"

#include <fmt/format.h>

#include <algorithm>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "data/beton/format.h"
#include "data/sources/archive.h"
#include "framework/core/error.h"

namespace precast::data {
namespace {

namespace fs = std::filesystem;

constexpr std::uint32_t kImagesMagic = 0x803;
constexpr std::uint32_t kLabelsMagic = 0x801;

std::uint32_t big_endian(std::span<const std::byte> bytes, std::size_t at) {
  std::uint32_t value = 0;
  for (std::size_t i = 0; i < 4; ++i)
    value = value << 8 | std::to_integer<std::uint32_t>(bytes[at + i]);
  return value;
}

/// The uncompressed content of an IDX file. Its elements begin at `begin`, after the header.
struct IdxFile {
  std::vector<std::uint32_t> shape;
  std::vector<std::byte> bytes;
  std::size_t begin = 0;
};

IdxFile read_idx(const fs::path& path, std::uint32_t magic) {
  const std::size_t dimensions = magic & 0xFF;
  IdxFile idx;
  idx.begin = 4 + 4 * dimensions;
  const std::vector<std::byte> header = read_uncompressed(path, idx.begin);
  if (header.size() >= 4 && big_endian(header, 0) != magic) {
    throw DataError(fmt::format("{}: expected an IDX file with magic number {:#x}, got {:#x}",
                                path.string(), magic, big_endian(header, 0)));
  }
  if (header.size() < idx.begin) {
    throw DataError(fmt::format("{}: expected at least {} bytes, the header of an IDX file, got {}",
                                path.string(), idx.begin, header.size()));
  }
  std::uint64_t bytes = 1;
  bool fits = true;
  for (std::size_t i = 0; i < dimensions; ++i) {
    idx.shape.push_back(big_endian(header, 4 + 4 * i));
    fits = fits && !__builtin_mul_overflow(bytes, std::uint64_t{idx.shape[i]}, &bytes);
  }
  if (!fits || bytes == 0 || bytes > UINT64_MAX / 2) {
    throw DataError(
        fmt::format("{}: expected dimensions of at least 1 with a product below 2^63, got [{}]",
                    path.string(), fmt::join(idx.shape, ", ")));
  }
  // Reads one byte more than needed, to detect a file that is too long.
  idx.bytes = read_uncompressed(path, idx.begin + bytes + 1);
  if (idx.bytes.size() != idx.begin + bytes) {
    throw DataError(fmt::format(
        "{}: expected {} bytes according to its header, got {}", path.string(), idx.begin + bytes,
        idx.bytes.size() < idx.begin + bytes ? fmt::format("{}", idx.bytes.size())
                                             : std::string("more")));
  }
  return idx;
}

void replace_last(std::string& text, std::string_view from, std::string_view to) {
  const std::size_t at = text.rfind(from);
  if (at != std::string::npos) text.replace(at, from.size(), to);
}

/// The file of labels next to `images`, plain or .gz.
fs::path find_labels(const fs::path& images) {
  std::string name = images.filename().string();
  if (name.find("images") == std::string::npos) {
    throw DataError(
        fmt::format("{}: expected a file name that contains 'images', got '{}'. The labels are "
                    "read from a file whose name contains 'labels' instead: for "
                    "train-images-idx3-ubyte, train-labels-idx1-ubyte",
                    images.string(), name));
  }
  replace_last(name, "images", "labels");
  replace_last(name, "idx3", "idx1");
  const fs::path same = images.parent_path() / name;
  if (fs::exists(same)) return same;
  const fs::path other = name.ends_with(".gz")
                             ? images.parent_path() / name.substr(0, name.size() - 3)
                             : images.parent_path() / (name + ".gz");
  if (fs::exists(other)) return other;
  throw DataError(fmt::format("{}: expected its labels in {} or {}, got neither file",
                              images.string(), same.string(), other.string()));
}

class IdxSource final : public Source {
 public:
  explicit IdxSource(const fs::path& path)
      : path_(path),
        images_(read_idx(path, kImagesMagic)),
        labels_(read_idx(find_labels(path), kLabelsMagic)) {
    if (images_.shape[0] != labels_.shape[0]) {
      throw DataError(
          fmt::format("{}: expected as many labels as images, got {} images and {} labels",
                      path.string(), images_.shape[0], labels_.shape[0]));
    }
    if (images_.shape[1] > kMaxSidePx || images_.shape[2] > kMaxSidePx) {
      throw DataError(fmt::format("{}: expected images of at most {} x {} px, got {} x {}",
                                  path.string(), kMaxSidePx, kMaxSidePx, images_.shape[2],
                                  images_.shape[1]));
    }
    const auto labels = std::span(labels_.bytes).subspan(labels_.begin);
    const auto last = std::to_integer<unsigned>(*std::ranges::max_element(labels));
    for (unsigned label = 0; label <= last; ++label) class_names_.push_back(std::to_string(label));
  }

  [[nodiscard]] std::uint64_t size() const override { return images_.shape[0]; }

  [[nodiscard]] Sample sample(std::uint64_t i) const override {
    Image image(static_cast<int>(images_.shape[1]), static_cast<int>(images_.shape[2]));
    const std::size_t pixels = image.pixels.size() / 3;
    const std::byte* grey = images_.bytes.data() + images_.begin + i * pixels;
    for (std::size_t p = 0; p < pixels; ++p) {
      std::fill_n(image.pixels.begin() + static_cast<std::ptrdiff_t>(3 * p), 3,
                  std::to_integer<std::uint8_t>(grey[p]));
    }
    const auto label = std::to_integer<std::int64_t>(labels_.bytes[labels_.begin + i]);
    return {fmt::format("{}[{}]", path_.string(), i), {ImageInput{{}, std::move(image)}, label}};
  }

 private:
  fs::path path_;
  IdxFile images_;
  IdxFile labels_;
};

}  // namespace

std::unique_ptr<Source> open_idx(const fs::path& path) {
  return std::make_unique<IdxSource>(path);
}

bool is_idx(const fs::path& path) {
  if (!fs::is_regular_file(path)) return false;
  const std::string name = path.filename().string();
  if (name.find("idx3") != std::string::npos) return true;
  // Do not uncompress other files: if one is damaged, the source that reads it reports the damage.
  if (name.find("images") == std::string::npos) return false;
  const std::vector<std::byte> start = read_uncompressed(path, 4);
  return start.size() == 4 && big_endian(start, 0) == kImagesMagic;
}

}  // namespace precast::data
