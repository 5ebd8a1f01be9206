#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <nlohmann/json.hpp>
#include <span>
#include <utility>
#include <vector>

#include "data/beton/dtype.h"
#include "data/beton/file_info.h"
#include "data/beton/json_text.h"
#include "data/beton/layout.h"
#include "data/c/handles.h"
#include "data/loader/preload.h"
#include "framework/core/config/schema.h"
#include "framework/core/dump_json.h"
#include "framework/core/error.h"

namespace precast::data::c {
namespace {

using nlohmann::ordered_json;

constexpr const char* kPixelType = "|u1";
constexpr std::int64_t kImageChannels = 3;

struct DatasetOptions {
  std::int64_t in_memory = 1;
  bool direct_io = false;
  std::string cache_dir;
  double http_retry_s = HttpOptions{}.retry_s;
  std::vector<std::string> fields;

  void options(Schema& schema) {
    schema
        .add("in_memory", &in_memory,
             "0: a loader reads pages into its cache; 1: map the file; 2: load the whole file")
        .min(0)
        .max(2);
    schema.add("direct_io", &direct_io, "bypass the page cache; only with in_memory 0");
    schema.add("cache_dir", &cache_dir, "folder for the fetched parts of remote datasets");
    schema
        .add("http_retry_s", &http_retry_s,
             "seconds for which a request to a dataset server is retried if there is no response")
        .min(0);
    schema.add("fields", &fields,
               "layouts of custom fields that FFCV wrote: NAME=BYTES:ALIGNMENT[:POINTER]");
  }
  /// @throws ConfigError for a wrong layout.
  [[nodiscard]] BetonOptions beton() const {
    BetonOptions made;
    made.remote.cache = cache_dir;
    made.remote.http.retry_s = http_retry_s;
    for (const std::string& layout : fields) add_field_layout(layout, "fields", made.layouts);
    return made;
  }
  void check(const Schema& schema, Diagnostics& diagnostics) const {
    if (direct_io && in_memory != 0) {
      schema.report_unread(
          "direct_io",
          fmt::format("it has no effect with in_memory: {}, only with in_memory: 0", in_memory),
          diagnostics);
    }
  }
  [[nodiscard]] BlobAccess access() const {
    if (in_memory != 0) return BlobAccess::mapped;
    return direct_io ? BlobAccess::on_disk_direct : BlobAccess::on_disk;
  }
};

std::string type_name(const FieldInfo& field) {
  const bool is_shaped =
      field.tag.kind == FieldTag::Kind::pixels || field.tag.kind == FieldTag::Kind::ragged;
  return std::string(is_shaped ? tag_kind_name(field.tag.kind) : field_type_name(field.type));
}

/// Describes the field by its name, its type, and the options with which precast_data_writer_open()
/// creates such a field (except the options of image fields).
ordered_json describe(const FieldInfo& field) {
  ordered_json text = {{"name", field.name}, {"type", type_name(field)}};
  if (!field.dtype.empty()) {
    text["dtype"] = field.dtype;
    text["shape"] = field.shape;
  }
  if (!field.tag.dtype.empty()) text["dtype"] = field.tag.dtype;
  if (field.tag.kind == FieldTag::Kind::pixels) text["channels"] = field.tag.channels;
  if (field.tag.kind == FieldTag::Kind::ragged) text["dims"] = field.tag.dims;
  return text;
}

std::string describe(const BetonReader& reader) {
  ordered_json fields = ordered_json::array();
  ordered_json classes = ordered_json::object();
  for (const FieldInfo& field : reader.fields()) fields.push_back(describe(field));
  for (const auto& [field, names] : file_info_of(reader).classes) classes[field] = names;
  const bool checksums = std::ranges::none_of(
      reader.files(), [](const BetonReader& file) { return file.sums().empty(); });
  return dump_json(ordered_json{{"path", reader.path().string()},
                                {"samples", reader.size()},
                                {"fingerprint", reader.fingerprint()},
                                {"checksums", checksums},
                                {"fields", fields},
                                {"classes", classes}});
}

void set_data(precast_data_value& value, precast_data_kind kind, std::span<const std::byte> data) {
  value.kind = kind;
  value.data = data.data();
  value.bytes = data.size();
}

void set_shape(precast_data_value& value, const char* dtype, std::span<const std::uint64_t> shape) {
  value.dtype = dtype;
  value.ndim = static_cast<int32_t>(shape.size());
  for (std::size_t i = 0; i < shape.size(); ++i)
    value.shape[i] = static_cast<std::int64_t>(shape[i]);
}

void read_image(const BetonReader& reader, std::uint64_t sample, std::size_t field,
                precast_data_value& value) {
  const ImageRecord image = reader.image(sample, field);
  set_data(value, image.mode == ImageMode::jpg ? PRECAST_DATA_IMAGE_FILE : PRECAST_DATA_ARRAY,
           image.bytes);
  const std::array<std::uint64_t, 3> shape = {static_cast<std::uint64_t>(image.height),
                                              static_cast<std::uint64_t>(image.width),
                                              kImageChannels};
  set_shape(value, kPixelType, shape);
}

/// Reads a value of a bytes field. The field may have a tag: pixels or ragged.
void read_bytes(const BetonReader& reader, std::uint64_t sample, std::size_t field,
                precast_data_value& value) {
  const FieldTag& tag = reader.fields()[field].tag;
  const std::span<const std::byte> blob = reader.blob(sample, field);
  if (tag.kind != FieldTag::Kind::pixels && tag.kind != FieldTag::Kind::ragged)
    return set_data(value, PRECAST_DATA_BYTES, blob);
  std::vector<std::uint64_t> extents;
  try {
    set_data(value, PRECAST_DATA_ARRAY, shaped_elements(tag, blob, extents));
  } catch (const DataError& error) {
    throw DataError(reader.sample_text(sample) + ", field '" + reader.fields()[field].name +
                    "': " + error.what());
  }
  set_shape(value, tag.dtype.c_str(), extents);
}

void read_value(const BetonReader& reader, std::uint64_t sample, std::size_t field,
                precast_data_value& value) {
  const FieldInfo& info = reader.fields()[field];
  switch (info.type) {
    case FieldType::integer:
      value.kind = PRECAST_DATA_INTEGER;
      value.integer = reader.integer(sample, field);
      return;
    case FieldType::floating:
      value.kind = PRECAST_DATA_FLOATING;
      value.floating = reader.floating(sample, field);
      return;
    case FieldType::image:
      return read_image(reader, sample, field, value);
    case FieldType::bytes:
      return read_bytes(reader, sample, field, value);
    case FieldType::json: {
      const std::string_view text = json_text(reader.blob(sample, field));
      return set_data(value, PRECAST_DATA_TEXT, std::as_bytes(std::span(text)));
    }
    case FieldType::ndarray:
    case FieldType::tensor:
      set_data(value, PRECAST_DATA_ARRAY, reader.blob(sample, field));
      return set_shape(value, info.dtype.c_str(), info.shape);
    default:
      return set_data(value, PRECAST_DATA_BYTES, reader.metadata(sample, field));
  }
}

std::unique_ptr<precast_data_dataset> open(std::span<const char* const> given,
                                           const char* options_text) {
  DatasetOptions options;
  Schema schema;
  options.options(schema);
  Diagnostics diagnostics;
  schema.apply(parse_options(options_text, "options"), diagnostics);
  options.check(schema, diagnostics);
  diagnostics.throw_if_errors();
  std::vector<std::filesystem::path> paths;
  for (const char* const path : given) {
    check_argument(path, "paths");
    paths.emplace_back(path);
  }
  auto dataset = std::make_unique<precast_data_dataset>();
  dataset->open_again = [paths, access = options.access(), beton = options.beton()] {
    return std::make_shared<const BetonReader>(paths, access, beton);
  };
  dataset->reader = dataset->open_again();
  if (options.in_memory == 2) preload(*dataset->reader);
  dataset->info = describe(*dataset->reader);
  return dataset;
}

}  // namespace
}  // namespace precast::data::c

using namespace precast::data;  // NOLINT(google-build-using-namespace): for the C functions below

extern "C" {

precast_data_status precast_data_dataset_open(const char* const* paths, size_t count,
                                              const char* options, precast_data_dataset** dataset) {
  return c::guarded([&] {
    c::check_argument(paths, "paths");
    c::check_argument(dataset, "dataset");
    if (count == 0) throw precast::ConfigError("dataset: expected a path, got none");
    *dataset = c::open({paths, count}, options).release();
    return PRECAST_DATA_OK;
  });
}

void precast_data_dataset_destroy(precast_data_dataset* dataset) {
  c::destroy(dataset);
}

const char* precast_data_dataset_info(const precast_data_dataset* dataset) {
  return dataset->info.c_str();
}

int64_t precast_data_dataset_samples(const precast_data_dataset* dataset) {
  return static_cast<int64_t>(dataset->reader->size());
}

precast_data_status precast_data_dataset_read(const precast_data_dataset* dataset, int64_t sample,
                                              size_t field, precast_data_value* value) {
  return c::guarded([&] {
    c::check_argument(value, "value");
    const BetonReader& reader = *c::checked_handle(dataset, "dataset").reader;
    if (sample < 0 || static_cast<std::uint64_t>(sample) >= reader.size() ||
        field >= reader.fields().size()) {
      throw precast::ConfigError(reader.path().string() + ": expected a sample id below " +
                                 std::to_string(reader.size()) + " and a field index below " +
                                 std::to_string(reader.fields().size()) + ", got " +
                                 std::to_string(sample) + " and " + std::to_string(field));
    }
    if (reader.disk() != nullptr)
      throw precast::ConfigError(
          "in_memory: expected 1 or 2 to read single values, got 0. Use a loader");
    *value = {};
    c::read_value(reader, static_cast<std::uint64_t>(sample), field, *value);
    return PRECAST_DATA_OK;
  });
}
}
