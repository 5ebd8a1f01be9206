#include "tests/data/beton/synthetic_beton.h"

#include <vector>

#include "data/write/image_field.h"
#include "data/write/number_fields.h"
#include "data/write/writer.h"
#include "tests/data/sources/sample_images.h"

namespace precast::test {

using data::store;

void write_made_beton(const std::filesystem::path& path, const SyntheticBeton& made) {
  data::BetonWriter writer(path,
                           {{"image", data::FieldType::image},
                            {"label", data::FieldType::integer},
                            {"weight", data::FieldType::floating}},
                           made.samples,
                           {.page_bytes = made.page_bytes, .checksums = made.checksums});
  std::vector<data::EncodedValue> values(3);
  data::EncodedValue& image = values[0];
  image.metadata.resize(data::kImageMetadataBytes);
  store(image.metadata.data(), static_cast<std::uint8_t>(data::ImageMode::raw));
  values[1].metadata.resize(8);
  values[2].metadata.resize(8);
  for (std::uint64_t i = 0; i < made.samples; ++i) {
    const int width = made.width + made.growth * static_cast<int>(i % 3);
    const int height = made.height + made.growth * static_cast<int>(i % 5);
    store(image.metadata.data() + data::kImageWidthAt, static_cast<std::uint16_t>(width));
    store(image.metadata.data() + data::kImageHeightAt, static_cast<std::uint16_t>(height));
    image.blob.resize(static_cast<std::size_t>(width) * static_cast<std::size_t>(height) * 3);
    std::uint64_t noise = i * 0x9E3779B97F4A7C15U + 1;
    for (std::byte& value : image.blob) {
      noise ^= noise << 13;
      noise ^= noise >> 7;
      noise ^= noise << 17;
      value = static_cast<std::byte>(noise >> 32);
    }
    const auto classes = static_cast<std::uint64_t>(made.classes);
    store(values[1].metadata.data(),
          static_cast<std::int64_t>(made.sorted ? i * classes / made.samples : i % classes));
    store(values[2].metadata.data(), static_cast<double>(i));
    writer.add(values);
  }
  writer.finish();
}

void write_int_beton(const std::filesystem::path& path, const IntBeton& made) {
  const std::size_t first = made.images ? 1 : 0;
  std::vector<data::FieldColumn> columns;
  if (made.images) columns.push_back({"image", data::FieldType::image});
  for (const std::string& field : made.fields) columns.push_back({field, data::FieldType::integer});
  data::BetonWriter writer(path, columns, made.rows.size(),
                           {.info = data::file_info_text(made.info)});
  data::ImageField image({.mode = data::ImageWriteMode::raw});
  data::IntField number;
  std::vector<data::EncodedValue> values(columns.size());
  for (std::uint64_t row = 0; row < made.rows.size(); ++row) {
    if (made.images) image.encode(data::ImageInput{{}, gradient(8, 8)}, row, values[0]);
    for (std::size_t i = 0; i < made.fields.size(); ++i)
      number.encode(made.rows[row].at(i), row, values[first + i]);
    writer.add(values);
  }
  writer.finish();
}

}  // namespace precast::test
