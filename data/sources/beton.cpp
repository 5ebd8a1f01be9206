#include "data/sources/beton.h"

#include <fmt/core.h>

#include <cstring>
#include <utility>

#include "data/beton/layout.h"
#include "data/beton/reader.h"
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
  explicit BetonSource(const std::filesystem::path& path) : reader_(path) {
    fields_.clear();
    for (const FieldInfo& field : reader_.fields()) {
      fields_.push_back({field.name,
                         std::string(field_type_name(field.type)),
                         {.dtype = field.dtype, .shape = field.shape}});
    }
    const std::size_t label = reader_.first_field(FieldType::integer);
    if (label < fields_.size()) class_names_ = reader_.class_names(label);
  }

  [[nodiscard]] std::uint64_t size() const override { return reader_.size(); }

  [[nodiscard]] Sample sample(std::uint64_t i) const override {
    Sample sample{fmt::format("{}:{}", reader_.path().string(), i), {}};
    for (std::size_t field = 0; field < fields_.size(); ++field)
      sample.values.push_back(value(i, field));
    return sample;
  }

 private:
  [[nodiscard]] Value value(std::uint64_t i, std::size_t field) const {
    switch (reader_.fields()[field].type) {
      case FieldType::floating:
        return reader_.floating(i, field);
      case FieldType::integer:
        return reader_.integer(i, field);
      case FieldType::image:
        return image_of(reader_.image(i, field));
      case FieldType::bytes:
        return copy_of(reader_.blob(i, field));
      case FieldType::json:
        return text_of(i, field);
      case FieldType::ndarray:
      case FieldType::tensor:
        return ArrayInput{fields_[field].array, copy_of(reader_.blob(i, field))};
      case FieldType::custom:
        break;
    }
    require(false, "a reader has no custom fields");
    return {};
  }
  /// Up to the first zero byte, as FFCV reads it.
  [[nodiscard]] std::string text_of(std::uint64_t i, std::size_t field) const {
    const std::span<const std::byte> blob = reader_.blob(i, field);
    const std::string_view text(reinterpret_cast<const char*>(blob.data()), blob.size());
    return std::string(text.substr(0, text.find('\0')));
  }

  BetonReader reader_;
};

}  // namespace

std::unique_ptr<Source> open_beton(const std::filesystem::path& path) {
  return std::make_unique<BetonSource>(path);
}

bool is_beton(const std::filesystem::path& path) {
  return std::filesystem::is_regular_file(path) &&
         (path.extension() == ".beton" || path.extension() == ".ffcv");
}

}  // namespace precast::data
