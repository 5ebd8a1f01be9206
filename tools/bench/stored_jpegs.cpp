#include "tools/bench/stored_jpegs.h"

#include <fmt/core.h>

#include "data/image/image_file.h"
#include "framework/core/error.h"

namespace precast::tools {

StoredJpegs::StoredJpegs(const std::vector<std::string>& paths) {
  if (paths.size() == 1 && paths[0].ends_with(".beton")) {
    add_dataset(paths[0]);
  } else {
    for (const std::string& path : paths) add_file(path);
  }
}

void StoredJpegs::add_dataset(const std::string& path) {
  reader_ = std::make_unique<data::BetonReader>(path);
  const std::size_t field = reader_->first_field(data::FieldType::image);
  if (field < reader_->fields().size()) {
    for (std::uint64_t sample = 0; sample < reader_->size(); ++sample) {
      const data::ImageRecord image = reader_->image(sample, field);
      if (image.mode == data::ImageMode::jpg) {
        jpegs_.push_back(
            {image.bytes, image.height, image.width, fmt::format("{}, sample {}", path, sample)});
      } else {
        ++raw_count_;
      }
    }
  }
  if (jpegs_.empty())
    throw DataError(
        fmt::format("{}: expected images stored as JPEG, got none ({} raw)", path, raw_count_));
}

void StoredJpegs::add_file(const std::string& path) {
  files_.push_back(std::make_unique<MappedFile>(path));
  const std::span<const std::byte> bytes = files_.back()->bytes();
  data::Image image;
  try {
    if (data::decode_image_file(bytes, image).format != data::ImageFormat::jpeg)
      throw DataError("expected a JPEG, got an image of another format");
  } catch (const DataError& error) {
    throw DataError(fmt::format("{}: {}", path, error.what()));
  }
  jpegs_.push_back({bytes, image.height, image.width, path});
}

}  // namespace precast::tools
