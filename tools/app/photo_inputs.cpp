#include "tools/app/photo_inputs.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <filesystem>
#include <set>
#include <system_error>
#include <utility>

#include "data/image/image_file.h"
#include "data/jobs/write_dataset.h"
#include "data/sources/class_files.h"
#include "data/write/image_field.h"
#include "framework/core/error.h"
#include "framework/core/file.h"
#include "tools/app/recipe_outputs.h"

namespace precast::tools {
namespace {

namespace fs = std::filesystem;

/// Deeper nesting is taken to mean that a link points back to one of its parent folders.
constexpr int kMaxDepth = 32;
/// Room for an image of 22 million pixels.
constexpr std::uint64_t kPageBytes = std::uint64_t{64} << 20;
constexpr std::size_t kMaxGroupPhotos = 1024;
/// The maximum size of the images that are stored together, estimated from their files.
constexpr std::uint64_t kMaxGroupBytes = std::uint64_t{256} << 20;
/// An upper estimate of the size of a photograph's pixels relative to the size of its PNG file.
constexpr std::uint64_t kRawToPngRatio = 4;

bool has_jpeg_extension(const std::string& path) {
  return data::format_from_extension(path) == data::ImageFormat::jpeg;
}

void list_folder(const fs::path& root, PhotoList& list) {
  const std::size_t first = list.paths.size();
  const std::size_t skip = (root / "").string().size();
  std::error_code failed;
  fs::recursive_directory_iterator entry(root, fs::directory_options::follow_directory_symlink,
                                         failed);
  for (; !failed && entry != fs::recursive_directory_iterator(); entry.increment(failed)) {
    if (entry.depth() > kMaxDepth) {
      throw DataError(
          fmt::format("{}: expected at most {} nested folders, got more. Does a link "
                      "lead back into its own folder?",
                      entry->path().string(), kMaxDepth));
    }
    std::error_code ignored;  // A broken link is not a folder.
    if (entry->is_directory(ignored)) continue;
    const std::string path = entry->path().string();
    const bool is_image = data::is_image_name(path) && !data::is_hidden(path.substr(skip));
    (is_image ? list.paths : list.ignored).push_back(path);
  }
  if (failed) throw IoError("cannot list", root.string(), failed.value());
  if (list.paths.size() == first)
    throw DataError(fmt::format("{}: expected image files, got none", root.string()));
  std::sort(list.paths.begin() + static_cast<std::ptrdiff_t>(first), list.paths.end());
}

/// A file without a name. The system removes it when its last descriptor is closed. A writer that
/// gets this object as its FileOps writes to this file.
class UnnamedFile final : public FileOps {
 public:
  explicit UnnamedFile(const fs::path& folder)
      : fd_(::open(folder.c_str(), O_TMPFILE | O_RDWR | O_CLOEXEC, S_IRUSR | S_IWUSR)) {
    // Some file systems do not support O_TMPFILE.
    if (fd_ < 0) {
      std::string name = (folder / "precast-XXXXXX").string();
      fd_ = ::mkostemp(name.data(), O_CLOEXEC);
      if (fd_ >= 0) ::unlink(name.c_str());
    }
    if (fd_ < 0) throw IoError("cannot create a file in", folder.string(), errno);
  }
  UnnamedFile(const UnnamedFile&) = delete;
  UnnamedFile& operator=(const UnnamedFile&) = delete;
  ~UnnamedFile() override { ::close(fd_); }

  /// A path that opens the file as long as this object exists.
  [[nodiscard]] std::string path() const { return fmt::format("/proc/self/fd/{}", fd_); }

  int create_exclusive(const char* /*path*/) override {
    return ::fcntl(fd_, F_DUPFD_CLOEXEC, /*at least*/ 0);
  }
  int open_append(const char* /*path*/) override {
    errno = ENOTSUP;
    return -1;
  }
  std::ptrdiff_t write(int fd, const void* data, std::size_t size) override {
    return ::write(fd, data, size);
  }
  std::ptrdiff_t pwrite(int fd, const void* data, std::size_t size, std::int64_t offset) override {
    return ::pwrite(fd, data, size, offset);
  }
  int ftruncate(int fd, std::int64_t size) override { return ::ftruncate(fd, size); }
  // The file is temporary and has no name, so nothing is synced, renamed or removed.
  int fsync(int /*fd*/) override { return 0; }
  int close(int fd) override { return ::close(fd); }
  int rename(const char* /*from*/, const char* /*to*/) override { return 0; }
  int exchange(const char* /*a*/, const char* /*b*/) override { return 0; }
  int unlink(const char* /*path*/) override { return 0; }
  int rmdir(const char* /*path*/) override { return 0; }
  int mkdir(const char* /*path*/) override { return 0; }
  int fsync_folder(const char* /*path*/) override { return 0; }
  std::int64_t free_bytes(const char* /*path*/) override { return INT64_MAX; }

 private:
  int fd_;
};

/// Stores an image, or a black pixel if the image cannot be read, so that each path has a sample
/// with the same index.
class PhotoField final : public data::Field {
 public:
  /// @param problems one for each sample; only the thread that encodes a sample writes its entry.
  explicit PhotoField(std::vector<std::string>& problems) : problems_(problems) {}
  [[nodiscard]] data::FieldType type() const override { return data::FieldType::image; }

  void encode(const data::Value& value, std::uint64_t sample, data::EncodedValue& out) override {
    std::string& problem = problems_[sample];
    if (problem.empty()) {
      try {
        return encode_photo(value, sample, out);
      } catch (const DataError& error) {
        problem = error.what();
      }
    }
    original_field_.encode(data::ImageInput{.file = {}, .pixels = data::Image(1, 1)}, sample, out);
  }

 private:
  void encode_photo(const data::Value& value, std::uint64_t sample, data::EncodedValue& out) {
    original_field_.encode(value, sample, out);
    if (out.blob.size() > kPageBytes) jpeg_field_.encode(value, sample, out);
    if (out.blob.size() > kPageBytes) {
      throw DataError(
          fmt::format("expected at most {} bytes as JPEG, got {}", kPageBytes, out.blob.size()));
    }
    const auto rotated = original_field_.tally().find("exif_rotated");
    if (rotated == original_field_.tally().end() || rotated->second == rotated_) return;
    rotated_ = rotated->second;
    count("exif_rotated");
  }

  std::vector<std::string>& problems_;
  data::ImageField original_field_{
      {.mode = data::ImageWriteMode::keep, .jpeg_quality = 100, .passthrough = true}};
  data::ImageField jpeg_field_{{.mode = data::ImageWriteMode::jpg, .jpeg_quality = 100}};
  std::uint64_t rotated_ = 0;
};

data::Sample read_photo(const std::string& path, std::string& problem) {
  data::Sample sample{.name = path, .values = {data::ImageInput{}}};
  try {
    auto& file = std::get<data::ImageInput>(sample.values[0]).file;
    file = read_file(path);
    if (file.empty()) problem = "expected an image, got an empty file";
  } catch (const IoError& error) {
    problem = error.what();
  }
  return sample;
}

fs::path temporary_folder() {
  std::error_code failed;
  const fs::path folder = fs::temp_directory_path(failed);
  if (failed) {
    throw IoError(
        fmt::format("cannot use the folder for temporary files: {}. Set TMPDIR to another folder",
                    failed.message()));
  }
  return folder;
}

}  // namespace

PhotoList list_photos(const std::vector<std::string>& inputs) {
  PhotoList list;
  for (const std::string& input : inputs) {
    std::error_code failed;
    const fs::file_status status = fs::status(input, failed);
    if (fs::is_directory(status)) {
      list_folder(input, list);
    } else if (fs::exists(status)) {
      list.paths.push_back(input);
    } else {
      throw IoError("cannot open", input, failed ? failed.value() : ENOENT);
    }
  }
  return list;
}

std::size_t photo_group_size(const std::vector<std::string>& paths, std::size_t first) {
  std::uint64_t bytes = 0;
  std::size_t end = first;
  while (end < paths.size() && end - first < kMaxGroupPhotos) {
    std::error_code failed;
    const std::uintmax_t size = fs::file_size(paths[end], failed);
    if (!failed) bytes += size * (has_jpeg_extension(paths[end]) ? 1 : kRawToPngRatio);
    if (bytes > kMaxGroupBytes && end > first) break;
    ++end;
  }
  return end - first;
}

std::string photo_field(const Recipe& recipe) {
  const data::Pipeline& pipeline = recipe.val_pipeline;
  const std::vector<std::string>& inputs = recipe.config.data.inputs;
  std::set<std::string> fields;
  if (pipeline.outputs.empty()) {
    fields.insert(inputs.begin(), inputs.end());
  } else if (inputs.empty()) {
    if (const auto* const image = find_input(pipeline, recipe.config, /*data=*/nullptr))
      fields.insert(image->field);
  }
  for (const data::OutputSpec& output : pipeline.outputs) {
    const bool is_input = std::ranges::find(inputs, output.name) != inputs.end();
    if (is_input && output.field != data::kSampleId) fields.insert(output.field);
  }
  if (fields.size() > 1) {
    recipe.refuse("data.inputs",
                  fmt::format("expected a single image field, because predict reads image files, "
                              "got {}",
                              fmt::join(fields, ", ")));
  }
  return fields.empty() ? "image" : *fields.begin();
}

PhotoDataset::PhotoDataset(std::span<const std::string> paths, const std::string& field,
                           int workers, const std::function<void(std::uint64_t)>& on_progress)
    : problems_(paths.size()) {
  UnnamedFile file(temporary_folder());
  const std::vector<data::FieldPlan> plans = {
      {field, [this] { return std::make_unique<PhotoField>(problems_); }}};
  data::WriteOptions options;
  options.layout = {.page_bytes = kPageBytes, .checksums = false};
  options.workers = workers;
  options.on_progress = [&](std::uint64_t done, std::uint64_t /*bytes*/) { on_progress(done); };
  options.ops = &file;
  const data::WriteSummary summary = data::write_dataset(
      temporary_folder() / "precast-photos.beton", plans, paths.size(),
      [&](std::uint64_t i) { return read_photo(paths[i], problems_[i]); }, options);
  const auto rotated = summary.tally.find("exif_rotated");
  rotated_ = rotated == summary.tally.end() ? 0 : rotated->second;
  reader_ = std::make_unique<data::BetonReader>(file.path());
}

}  // namespace precast::tools
