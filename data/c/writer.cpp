#include "data/write/writer.h"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <filesystem>
#include <mutex>
#include <optional>
#include <utility>

#include "data/beton/file_info.h"
#include "data/c/handles.h"
#include "data/write/register.h"
#include "framework/core/config/schema.h"
#include "framework/core/error.h"
#include "framework/core/suggest.h"

struct precast_data_writer : precast::data::c::ProcessBound {
  std::string path;
  std::vector<std::string> names;
  std::vector<std::unique_ptr<precast::data::Field>> fields;
  /// For each field: the number of its class names; 0: it has none.
  std::vector<std::size_t> classes;
  std::vector<precast::data::EncodedValue> encoded;
  std::optional<precast::data::BetonWriter> file;
  std::uint64_t samples = 0;
  /// Maximum number of samples, given when the file was opened.
  std::uint64_t limit = 0;
  /// Locked during a call.
  std::mutex mutex;
};

namespace precast::data::c {
namespace {

constexpr double kMaxDimension = 0x1p40;

struct WriterOptions {
  std::int64_t page_size = static_cast<std::int64_t>(kDefaultPageBytes);
  bool checksums = true;
  std::int64_t seed = 0;
  ConfigNode classes;

  void options(Schema& schema) {
    schema.add("page_size", &page_size, "bytes per page").min(1);
    schema.add("checksums", &checksums, "whether to store checksums");
    schema
        .add("seed", &seed,
             "seed of the random choices of a field, such as which images are stored as JPEG")
        .min(0);
    schema.add("classes", &classes,
               "class names of integer fields: {FIELD: [NAME of class 0, NAME of class 1, ...]}");
  }
  /// Returns `classes`, {FIELD: [NAME, ...]}, for the file.
  [[nodiscard]] FileInfo info(const std::vector<FieldColumn>& columns,
                              Diagnostics& diagnostics) const {
    using Kind = ConfigNode::Kind;
    if (classes.kind != Kind::map && classes.kind != Kind::null) {
      diagnostics.error(classes.origin, "classes",
                        fmt::format("expected {{FIELD: [NAME, ...]}}, got {}", classes.text()));
    }
    if (!classes.entries.empty() && !checksums) {
      diagnostics.error(classes.origin, "classes",
                        "expected checksums: true, because the names are stored with the "
                        "checksums, got false");
    }
    std::vector<std::string> fields;
    for (const FieldColumn& column : columns)
      if (column.type == FieldType::integer) fields.push_back(column.name);
    FileInfo info;
    for (const auto& [field, origin, names] : classes.entries) {
      const std::string key = "classes." + field;
      if (std::ranges::find(fields, field) == fields.end()) {
        diagnostics.error(
            origin, key,
            fmt::format("expected an int field, got '{}'. {}", field, suggest(field, fields)));
      }
      const auto is_text = [](const ConfigNode& name) { return name.kind == Kind::scalar; };
      if (names.kind != Kind::list || !std::ranges::all_of(names.items, is_text)) {
        diagnostics.error(origin, key,
                          fmt::format("expected a list of names, got {}", names.text()));
      }
      for (const ConfigNode& name : names.items) info.classes[field].push_back(name.scalar);
    }
    return info;
  }
};

/// Options that describe an array field. The field types themselves do not have these options,
/// because `precast write` reads the description from the source.
struct ArrayOptions {
  std::string dtype;
  std::vector<double> shape;
  std::int64_t channels = 3;
  std::int64_t dims = 1;
};

/// Creates a field from its type and options. The options of array fields (ndarray, tensor, pixels,
/// ragged) are ArrayOptions.
class FieldMaker {
 public:
  explicit FieldMaker(std::uint64_t seed) : seed_(seed) {}

  /// @param entry a type, or {TYPE: OPTIONS}.
  [[nodiscard]] std::unique_ptr<Field> make(const ConfigNode::Entry& entry) const {
    PartSpec spec{.name = {}, .key = "fields." + entry.key};
    const ConfigNode& node = entry.value;
    if (node.kind == ConfigNode::Kind::scalar) {
      spec.name = node.scalar;
    } else if (node.kind == ConfigNode::Kind::map && node.entries.size() == 1) {
      spec.name = node.entries[0].key;
      spec.options = node.entries[0].value;
    } else {
      throw ConfigError(fmt::format("{}: {}: expected a type or {{TYPE: OPTIONS}}, got {}",
                                    node.origin.text(), spec.key, node.text()));
    }
    FieldInputs inputs;
    inputs.seed = seed_;
    read_array(spec, inputs);
    return fields_.make(spec, inputs);
  }

 private:
  static void read_array(PartSpec& spec, FieldInputs& inputs) {
    const bool fixed = spec.name == "ndarray" || spec.name == "tensor";
    const bool pixels = spec.name == "pixels";
    if (!fixed && !pixels && spec.name != "ragged") return;
    ArrayOptions array;
    Schema schema;
    schema.add("dtype", &array.dtype, "numpy's type string").required();
    if (fixed) schema.add("shape", &array.shape, "shape of one value").required();
    if (pixels) schema.add("channels", &array.channels, "channels").min(1).max(4);
    if (spec.name == "ragged") schema.add("dims", &array.dims, "dimensions").min(1).max(32);
    Diagnostics diagnostics;
    schema.apply(spec.options, diagnostics, spec.key);
    schema.check_required(spec.options.origin, diagnostics, spec.key);
    diagnostics.throw_if_errors();
    spec.options = {};
    if (fixed) {
      inputs.array.dtype = array.dtype;
      for (const double side : array.shape) {
        if (!(side >= 0 && side <= kMaxDimension) || side != std::floor(side))
          throw ConfigError(fmt::format("{}.shape: expected whole numbers from 0 to 2^40, got {}",
                                        spec.key, side));
        inputs.array.shape.push_back(static_cast<std::uint64_t>(side));
      }
    } else {
      inputs.tag = {.kind = pixels ? FieldTag::Kind::pixels : FieldTag::Kind::ragged,
                    .dtype = array.dtype,
                    .channels = pixels ? static_cast<std::size_t>(array.channels) : 0,
                    .dims = pixels ? 0 : static_cast<std::size_t>(array.dims)};
    }
  }

  std::uint64_t seed_;
  FieldRegistry fields_ = make_fields();
};

std::unique_ptr<precast_data_writer> open(const char* path, const char* fields,
                                          std::int64_t samples, const char* options_text) {
  if (samples < 1) throw ConfigError(fmt::format("samples: expected at least 1, got {}", samples));
  WriterOptions options;
  Schema schema;
  options.options(schema);
  Diagnostics diagnostics;
  schema.apply(parse_options(options_text, "options"), diagnostics);
  const FieldMaker maker(static_cast<std::uint64_t>(options.seed));
  auto writer = std::make_unique<precast_data_writer>();
  writer->path = path;
  std::vector<FieldColumn> columns;
  for (const ConfigNode::Entry& entry : parse_options(fields, "fields").entries) {
    writer->fields.push_back(maker.make(entry));
    writer->names.push_back(entry.key);
    const Field& field = *writer->fields.back();
    columns.push_back({entry.key, field.type(), field.arguments()});
  }
  const FileInfo info = options.info(columns, diagnostics);
  for (const std::string& name : writer->names) {
    const auto classes = info.classes.find(name);
    writer->classes.push_back(classes == info.classes.end() ? 0 : classes->second.size());
  }
  const BetonLayout layout{.page_bytes = static_cast<std::uint64_t>(options.page_size),
                           .checksums = options.checksums,
                           .info = info.classes.empty() ? "" : file_info_text(info)};
  diagnostics.throw_if_errors();
  writer->encoded.resize(columns.size());
  writer->limit = static_cast<std::uint64_t>(samples);
  writer->file.emplace(path, std::move(columns), writer->limit, layout);
  return writer;
}

std::vector<std::byte> bytes_of(const precast_data_value& value) {
  if (value.bytes > 0) check_argument(value.data, "data");
  const auto* const data = static_cast<const std::byte*>(value.data);
  return {data, data + value.bytes};
}

ArrayInput array_of(const precast_data_value& value) {
  check_argument(value.dtype, "dtype");
  if (value.ndim < 0 || value.ndim > PRECAST_DATA_MAX_DIMS)
    throw DataError(
        fmt::format("expected 0 to {} dimensions, got {}", PRECAST_DATA_MAX_DIMS, value.ndim));
  ArrayInput array{.format = {.dtype = value.dtype, .shape = {}}, .elements = bytes_of(value)};
  std::uint64_t bytes = dtype_bytes(value.dtype);
  if (bytes == 0) {
    throw DataError(
        fmt::format("expected a plain numpy type such as <f4, got '{}'", array.format.dtype));
  }
  for (int i = 0; i < value.ndim; ++i) {
    if (value.shape[i] < 0)
      throw DataError(fmt::format("expected dimensions >= 0, got {}", value.shape[i]));
    array.format.shape.push_back(static_cast<std::uint64_t>(value.shape[i]));
    if (__builtin_mul_overflow(bytes, array.format.shape.back(), &bytes))
      throw DataError(
          fmt::format("expected an array that fits into memory, got {}", describe(array.format)));
  }
  if (bytes != value.bytes)
    throw DataError(fmt::format("expected {} bytes for an array {}, got {}", bytes,
                                describe(array.format), value.bytes));
  return array;
}

/// Returns an array as the pixels of an RGB image.
ImageInput image_of(const ArrayInput& array) {
  const std::vector<std::uint64_t>& shape = array.format.shape;
  if (shape.size() != 3 || shape[2] != 3 || array.format.dtype != "|u1" || shape[0] < 1 ||
      shape[1] < 1 || shape[0] * shape[1] > kMaxPixels)
    throw DataError(fmt::format("expected 1 to {} pixels [H, W, 3] of |u1, got {}", kMaxPixels,
                                describe(array.format)));
  ImageInput input;
  input.pixels = Image(static_cast<int>(shape[0]), static_cast<int>(shape[1]));
  std::memcpy(input.pixels.pixels.data(), array.elements.data(), array.elements.size());
  return input;
}

Value value_of(const precast_data_value& value, const Field& field) {
  const bool is_image = field.type() == FieldType::image;
  switch (value.kind) {
    case PRECAST_DATA_INTEGER:
      return value.integer;
    case PRECAST_DATA_FLOATING:
      return value.floating;
    case PRECAST_DATA_TEXT: {
      const std::vector<std::byte> text = bytes_of(value);
      return std::string(reinterpret_cast<const char*>(text.data()), text.size());
    }
    case PRECAST_DATA_ARRAY: {
      ArrayInput array = array_of(value);
      if (is_image) return image_of(array);
      return array;
    }
    case PRECAST_DATA_BYTES:
      if (!is_image) return bytes_of(value);
      [[fallthrough]];
    case PRECAST_DATA_IMAGE_FILE: {
      ImageInput input;
      input.file = bytes_of(value);
      return input;
    }
    default:
      throw ConfigError(fmt::format("expected a kind of precast_data_kind, got {}", value.kind));
  }
}

/// @throws DataError if the field has class names and the label is not from 0 to `classes` - 1.
/// @param classes the number of class names; 0: the field has none
void check_label(const precast_data_value& value, std::size_t classes) {
  if (classes == 0 || value.kind != PRECAST_DATA_INTEGER) return;
  if (value.integer < 0 || static_cast<std::uint64_t>(value.integer) >= classes)
    throw DataError(fmt::format("expected the label of one of the {} class names, 0 to {}, got {}",
                                classes, classes - 1, value.integer));
}

void add(precast_data_writer& writer, std::span<const precast_data_value> values) {
  if (!writer.file)
    throw ConfigError(writer.path + ": expected an open writer, got one that has finished");
  if (writer.samples == writer.limit)
    throw ConfigError(
        fmt::format("{}: expected at most {} samples, the maximum given on opening, got more",
                    writer.path, writer.limit));
  if (values.size() != writer.fields.size())
    throw ConfigError(fmt::format("{}: sample {}: expected {} values, one per field, got {}",
                                  writer.path, writer.samples, writer.fields.size(),
                                  values.size()));
  std::size_t i = 0;
  const auto location = [&] {
    return fmt::format("{}: sample {}, field '{}': ", writer.path, writer.samples, writer.names[i]);
  };
  for (; i < values.size(); ++i) {
    Field& field = *writer.fields[i];
    try {
      check_label(values[i], writer.classes[i]);
      field.encode(value_of(values[i], field), writer.samples, writer.encoded[i]);
    } catch (const Error& error) {
      throw Error(location() + error.what(), error.exit_code());
    }
  }
  try {
    writer.file->add(writer.encoded);
  } catch (const DataError& error) {
    throw DataError(fmt::format("{}: sample {}: {}", writer.path, writer.samples, error.what()));
  }
  ++writer.samples;
}

}  // namespace
}  // namespace precast::data::c

using namespace precast::data;  // NOLINT(google-build-using-namespace): for the C functions below

extern "C" {

precast_data_status precast_data_writer_open(const char* path, const char* fields, int64_t samples,
                                             const char* options, precast_data_writer** writer) {
  return c::guarded([&] {
    c::check_argument(path, "path");
    c::check_argument(fields, "fields");
    c::check_argument(writer, "writer");
    *writer = c::open(path, fields, samples, options).release();
    return PRECAST_DATA_OK;
  });
}

precast_data_status precast_data_writer_add(precast_data_writer* handle,
                                            const precast_data_value* values, size_t count) {
  return c::guarded([&] {
    c::check_argument(values, "values");
    precast_data_writer& writer = c::checked_handle(handle, "writer");
    const std::scoped_lock lock(writer.mutex);
    c::add(writer, {values, count});
    return PRECAST_DATA_OK;
  });
}

precast_data_status precast_data_writer_finish(precast_data_writer* handle) {
  return c::guarded([&] {
    precast_data_writer& writer = c::checked_handle(handle, "writer");
    const std::scoped_lock lock(writer.mutex);
    if (!writer.file)
      throw precast::ConfigError(writer.path +
                                 ": expected an open writer, got one that has finished");
    writer.file->finish();
    writer.file.reset();
    return PRECAST_DATA_OK;
  });
}

void precast_data_writer_destroy(precast_data_writer* writer) {
  c::destroy(writer);
}
}
