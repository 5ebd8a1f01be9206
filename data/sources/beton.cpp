#include "data/sources/beton.h"

#include <fmt/core.h>

#include <cstring>
#include <utility>

#include "data/beton/file_info.h"
#include "data/beton/json_text.h"
#include "data/beton/layout.h"
#include "data/beton/reader.h"
#include "data/order/labels.h"
#include "framework/core/error.h"
#include "framework/core/file.h"

namespace precast::data {
namespace {

std::vector<std::byte> copy_of(std::span<const std::byte> bytes) {
  return {bytes.begin(), bytes.end()};
}

ImageInput image_of(const ImageRecord& record) {
  if (record.mode == ImageMode::jpg) return {copy_of(record.bytes), {}};
  ImageInput input{{}, Image(record.height, record.width)};
  std::memcpy(input.pixels.pixels.data(), record.bytes.data(), record.bytes.size());
  return input;
}

class BetonSource final : public Source {
 public:
  explicit BetonSource(BetonReader reader) : reader_(std::move(reader)) {
    fields_.clear();
    for (const FieldInfo& field : reader_.fields()) {
      FieldTag tag = field.tag;
      // The layout of a custom field may come from the user's options instead of a tag.
      if (field.type == FieldType::custom)
        tag = {.kind = FieldTag::Kind::custom, .layout = field.layout};
      const std::string_view type =
          tag.kind == FieldTag::Kind::none ? field_type_name(field.type) : tag_kind_name(tag.kind);
      fields_.push_back({field.name,
                         std::string(type),
                         {.dtype = field.dtype, .shape = field.shape},
                         std::move(tag),
                         field.arguments});
    }
    read_class_names();
  }

  [[nodiscard]] std::uint64_t size() const override { return reader_.size(); }

  [[nodiscard]] Sample sample(std::uint64_t i) const override {
    Sample sample{fmt::format("{}:{}", reader_.path().string(), i), {}};
    for (std::size_t field = 0; field < fields_.size(); ++field)
      sample.values.push_back(value(i, field));
    return sample;
  }

 private:
  void read_class_names() {
    other_class_names_ = file_info_of(reader_).classes;
    const std::size_t label = default_label_field(reader_);
    if (label == fields_.size()) return;
    const auto names = other_class_names_.find(fields_[label].name);
    if (names == other_class_names_.end() || names->second.empty()) return;
    class_field_ = names->first;
    class_names_ = std::move(names->second);
    other_class_names_.erase(names);
  }
  [[nodiscard]] Value value(std::uint64_t i, std::size_t field) const {
    switch (reader_.fields()[field].type) {
      case FieldType::floating:
        return reader_.floating(i, field);
      case FieldType::integer:
        return reader_.integer(i, field);
      case FieldType::image:
        return image(i, field);
      case FieldType::bytes:
        return bytes_value(i, field);
      case FieldType::json:
        return std::string(json_text(blob(i, field)));
      case FieldType::ndarray:
      case FieldType::tensor:
        return ArrayInput{fields_[field].array, copy_of(blob(i, field))};
      case FieldType::custom:
        return custom_value(i, field);
    }
    require(false, "the field has a known type");
    return {};
  }
  /// Checks the bytes against their checksum before returning them: the new file gets new
  /// checksums, which would hide damage.
  [[nodiscard]] std::span<const std::byte> blob(std::uint64_t i, std::size_t field) const {
    const std::span<const std::byte> bytes = reader_.blob(i, field);
    if (reader_.fields()[field].has_pointer()) reader_.check_value(i, field, bytes);
    return bytes;
  }
  [[nodiscard]] ImageInput image(std::uint64_t i, std::size_t field) const {
    const ImageRecord record = reader_.image(i, field);
    reader_.check_value(i, field, record.bytes);
    return image_of(record);
  }
  [[nodiscard]] Value bytes_value(std::uint64_t i, std::size_t field) const {
    const FieldTag& tag = fields_[field].tag;
    const std::span<const std::byte> bytes = blob(i, field);
    if (tag.kind == FieldTag::Kind::none) return copy_of(bytes);
    ArrayInput array{{tag.dtype, {}}, {}};
    array.elements = copy_of(shaped_elements(tag, bytes, array.format.shape));
    return array;
  }
  [[nodiscard]] Value custom_value(std::uint64_t i, std::size_t field) const {
    reader_.check_movable(i, field);
    return CustomInput{copy_of(reader_.metadata(i, field)), copy_of(blob(i, field))};
  }

  BetonReader reader_;
};

}  // namespace

std::unique_ptr<Source> open_beton(const std::filesystem::path& path) {
  return open_beton(path, {});
}

std::unique_ptr<Source> open_beton(const std::filesystem::path& path, const BetonOptions& options) {
  return open_beton(BetonReader(path, BlobAccess::mapped, options));
}

std::unique_ptr<Source> open_beton(const BetonReader& reader) {
  return std::make_unique<BetonSource>(reader);
}

bool is_beton(const std::filesystem::path& path) {
  return std::filesystem::is_regular_file(path) &&
         (path.extension() == ".beton" || path.extension() == ".ffcv");
}

}  // namespace precast::data
