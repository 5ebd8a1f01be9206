#include "data/sources/cifar.h"

#include <fmt/core.h>

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "framework/core/error.h"
#include "framework/core/file.h"

namespace precast::data {
namespace {

namespace fs = std::filesystem;

constexpr int kSidePx = 32;
constexpr std::size_t kPlaneBytes = std::size_t{kSidePx} * kSidePx;

/// The differences between the two datasets.
struct Variant {
  int classes;
  std::size_t label_at;
  std::size_t record_bytes;
  const char* names_file;
};
constexpr Variant kCifar10 = {10, 0, 1 + 3 * kPlaneBytes, "batches.meta.txt"};
constexpr Variant kCifar100 = {100, 1, 2 + 3 * kPlaneBytes, "fine_label_names.txt"};

bool is_cifar10_name(const std::string& name) {
  return name == "test_batch.bin" || (name.starts_with("data_batch") && name.ends_with(".bin"));
}
bool is_cifar100_name(const std::string& name) {
  return name == "train.bin" || name == "test.bin";
}

/// The training files of a folder, sorted; or `path` itself if it is a file.
std::vector<fs::path> files_of(const fs::path& path) {
  if (!fs::is_directory(path)) return {path};
  std::vector<fs::path> files;
  for (const auto& entry : fs::directory_iterator(path)) {
    const std::string name = entry.path().filename().string();
    const bool training = name.starts_with("data_batch") || name == "train.bin";
    if (training && name.ends_with(".bin")) files.push_back(entry.path());
  }
  std::ranges::sort(files);
  return files;
}

class CifarSource final : public Source {
 public:
  explicit CifarSource(const fs::path& path) {
    const std::vector<fs::path> files = files_of(path);
    if (files.empty()) {
      throw DataError(fmt::format(
          "{}: expected CIFAR files data_batch_*.bin or train.bin, got none", path.string()));
    }
    variant_ = is_cifar100_name(files[0].filename().string()) ? kCifar100 : kCifar10;
    for (const fs::path& file : files) add(file);
    read_class_names(files[0].parent_path() / variant_.names_file);
  }

  [[nodiscard]] std::uint64_t size() const override { return starts_.back(); }

  [[nodiscard]] Sample sample(std::uint64_t i) const override {
    const auto after = std::ranges::upper_bound(starts_, i);
    const auto file = static_cast<std::size_t>(after - starts_.begin()) - 1;
    const std::uint64_t record = i - starts_[file];
    const std::byte* at = files_[file]->bytes().data() + record * variant_.record_bytes;
    const std::byte* planes = at + variant_.label_at + 1;
    Image image(kSidePx, kSidePx);
    for (std::size_t p = 0; p < kPlaneBytes; ++p) {
      for (std::size_t c = 0; c < 3; ++c) {
        image.pixels[3 * p + c] = std::to_integer<std::uint8_t>(planes[c * kPlaneBytes + p]);
      }
    }
    return {
        fmt::format("{}[{}]", files_[file]->path().string(), record),
        {ImageInput{{}, std::move(image)}, std::to_integer<std::int64_t>(at[variant_.label_at])}};
  }

 private:
  void add(const fs::path& path) {
    auto file = std::make_unique<MappedFile>(path);
    const std::size_t bytes = file->bytes().size();
    if (bytes == 0 || bytes % variant_.record_bytes != 0) {
      throw DataError(fmt::format(
          "{}: expected one or more CIFAR-{} records of {} bytes each, got {} bytes in total",
          path.string(), variant_.classes, variant_.record_bytes, bytes));
    }
    const std::size_t records = bytes / variant_.record_bytes;
    for (std::size_t i = 0; i < records; ++i) {
      const int label =
          std::to_integer<int>(file->bytes()[i * variant_.record_bytes + variant_.label_at]);
      if (label < variant_.classes) continue;
      throw DataError(fmt::format("{}: record {}: expected a label below {}, got {}", path.string(),
                                  i, variant_.classes, label));
    }
    starts_.push_back(starts_.back() + records);
    files_.push_back(std::move(file));
  }

  /// Reads one name per line. If the file is missing or has the wrong number of names, the classes
  /// are named after their labels: `0`, `1` and so on.
  void read_class_names(const fs::path& path) {
    if (fs::exists(path)) {
      const std::vector<std::byte> bytes = read_file(path);
      std::string line;
      for (const std::byte byte : bytes) {
        const char letter = static_cast<char>(byte);
        if (letter != '\n') {
          if (letter != '\r') line += letter;
        } else {
          if (!line.empty()) class_names_.push_back(line);
          line.clear();
        }
      }
      if (!line.empty()) class_names_.push_back(line);
    }
    if (class_names_.size() == static_cast<std::size_t>(variant_.classes)) return;
    class_names_.clear();
    for (int i = 0; i < variant_.classes; ++i) class_names_.push_back(std::to_string(i));
  }

  Variant variant_ = kCifar10;
  std::vector<std::unique_ptr<MappedFile>> files_;
  /// Index of the first sample of each file, and at the end the total number of samples.
  std::vector<std::uint64_t> starts_ = {0};
};

}  // namespace

std::unique_ptr<Source> open_cifar(const fs::path& path) {
  return std::make_unique<CifarSource>(path);
}

bool is_cifar(const fs::path& path) {
  if (fs::is_directory(path)) return !files_of(path).empty();
  const std::string name = path.filename().string();
  return is_cifar10_name(name) || is_cifar100_name(name);
}

}  // namespace precast::data
