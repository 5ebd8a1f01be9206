#include "tools/commands/inspect_export.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <map>
#include <span>
#include <string_view>
#include <vector>

#include "data/beton/json_text.h"
#include "data/image/image_file.h"
#include "data/image/jpeg_encoder.h"
#include "framework/core/archive/npy.h"
#include "framework/core/error.h"
#include "framework/core/file.h"
#include "tools/commands/dataset_output.h"
#include "tools/commands/png_file.h"

namespace precast::tools {
namespace {

using data::BetonReader;
using data::FieldType;

/// Quality of a JPEG made from an image that is stored as pixels.
constexpr int kExportQuality = 95;

void write_bytes(const std::string& out, std::span<const std::byte> bytes) {
  AtomicFile file(out);
  file.append(bytes);
  file.commit();
}

data::Image decode(const data::ImageRecord& record, const std::string& context) {
  data::Image image;
  if (record.mode == data::ImageMode::jpg) {
    data::decode_image_file(record.bytes, image);
    if (image.width != record.width || image.height != record.height) {
      throw DataError(fmt::format("{}: expected a JPEG of {} x {} px, got {} x {}", context,
                                  record.width, record.height, image.width, image.height));
    }
    return image;
  }
  image = data::Image(record.height, record.width);
  std::copy_n(reinterpret_cast<const std::uint8_t*>(record.bytes.data()), record.bytes.size(),
              image.pixels.begin());
  return image;
}

void write_jpeg(const data::Image& image, const std::string& out) {
  std::vector<std::byte> encoded;
  data::JpegEncoder().encode(image.view(), kExportQuality, encoded);
  write_bytes(out, encoded);
}

void write_ppm(const data::Image& image, const std::string& out) {
  AtomicFile file(out);
  file.append(fmt::format("P6\n{} {}\n255\n", image.width, image.height));
  file.append(std::as_bytes(std::span(image.pixels)));
  file.commit();
}

void export_image(const data::ImageRecord& record, const std::string& out,
                  const std::string& context) {
  const std::string ending = std::filesystem::path(out).extension();
  const bool jpeg = ending == ".jpg" || ending == ".jpeg";
  if (!jpeg && ending != ".png" && ending != ".npy" && ending != ".ppm") {
    throw ConfigError(fmt::format(
        "--output: expected a name ending in .jpg, .png, .npy or .ppm for an image, got '{}'",
        out));
  }
  if (jpeg && record.mode == data::ImageMode::jpg) return write_bytes(out, record.bytes);
  const data::Image image = decode(record, context);
  if (jpeg) return write_jpeg(image, out);
  if (ending == ".ppm") return write_ppm(image, out);
  if (ending == ".png")
    return write_png(out, image.pixels, static_cast<std::uint32_t>(image.height),
                     static_cast<std::uint32_t>(image.width));
  write_npy(out, DType::u8, std::array<std::int64_t, 3>{image.height, image.width, 3},
            std::as_bytes(std::span(image.pixels)));
}

/// Whether the field's values are arrays, each with its own shape.
bool is_shaped(const data::FieldInfo& field) {
  return field.tag.kind == data::FieldTag::Kind::pixels ||
         field.tag.kind == data::FieldTag::Kind::ragged;
}

void export_array(std::string_view dtype, std::span<const std::uint64_t> shape,
                  std::span<const std::byte> elements, const std::string& out) {
  if (std::filesystem::path(out).extension() != ".npy")
    throw ConfigError(
        fmt::format("--output: expected a name ending in .npy for an array, got '{}'", out));
  write_npy(out, dtype, std::vector<std::int64_t>(shape.begin(), shape.end()), elements);
}

/// The file extension for a field.
std::string_view ending_of(const BetonReader& reader, std::uint64_t sample, std::size_t field) {
  if (is_shaped(reader.fields()[field])) return ".npy";
  switch (reader.fields()[field].type) {
    case FieldType::image:
      return reader.image_mode(sample, field) == data::ImageMode::jpg ? ".jpg" : ".png";
    case FieldType::ndarray:
    case FieldType::tensor:
      return ".npy";
    case FieldType::json:
      return ".json";
    default:
      return ".bin";
  }
}

void export_value(const BetonReader& reader, std::uint64_t sample, std::size_t field,
                  std::span<const std::byte> blob, const std::string& out) {
  const data::FieldInfo& info = reader.fields()[field];
  if (is_shaped(info)) {
    std::vector<std::uint64_t> shape;
    const auto elements = data::shaped_elements(info.tag, blob, shape);
    return export_array(info.tag.dtype, shape, elements, out);
  }
  switch (info.type) {
    case FieldType::image:
      return export_image(reader.image(sample, field), out,
                          fmt::format("{}: sample {}", reader.path().string(), sample));
    case FieldType::ndarray:
    case FieldType::tensor:
      return export_array(
          info.dtype, std::vector<std::uint64_t>(info.shape.begin(), info.shape.end()), blob, out);
    case FieldType::json:
      return write_bytes(out, std::as_bytes(std::span(data::json_text(blob))));
    default:
      return write_bytes(out, blob);
  }
}

}  // namespace

void export_field(const BetonReader& reader, std::uint64_t sample, std::size_t field,
                  const std::string& out) {
  const data::FieldInfo& info = reader.fields()[field];
  if (!info.has_pointer())
    throw ConfigError(fmt::format(
        "--output: expected a field whose values are in pages, got '{}'. inspect shows its value "
        "without --output",
        info.name));
  check_different_file(out, reader.path());
  const auto blob = reader.blob(sample, field);
  reader.check_value(sample, field, blob);
  export_value(reader, sample, field, blob, out);
}

void export_sample(const BetonReader& reader, std::uint64_t sample,
                   const std::filesystem::path& folder) {
  std::map<std::string, std::size_t> fields;
  for (std::size_t field = 0; field < reader.fields().size(); ++field) {
    const data::FieldInfo& info = reader.fields()[field];
    if (!info.has_pointer()) continue;
    // The field's name comes from the dataset and must not lead outside the folder.
    std::string name = info.name;
    std::ranges::replace(name, '/', '_');
    name += ending_of(reader, sample, field);
    const auto [other, added] = fields.emplace(name, field);
    if (!added) {
      throw ConfigError(fmt::format(
          "--output: expected fields with different file names, got {} for '{}' and '{}'. Write "
          "each field with --field and its own --output",
          name, reader.fields()[other->second].name, info.name));
    }
  }
  create_folders(folder);
  for (const auto& [name, field] : fields) export_field(reader, sample, field, folder / name);
}

}  // namespace precast::tools
