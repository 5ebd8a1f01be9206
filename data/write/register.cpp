#include "data/write/register.h"

#include <fmt/core.h>

#include "data/write/blob_fields.h"
#include "data/write/custom_field.h"
#include "data/write/number_fields.h"
#include "data/write/shaped_fields.h"
#include "framework/core/error.h"

namespace precast::data {
namespace {

/// The tag that the source's file has, else the one that the first value asks for.
template <typename Shaped>
std::unique_ptr<Field> make_shaped(const FieldOptions& options, FieldTag::Kind kind) {
  if (options.tag.kind == kind) return std::make_unique<Shaped>(options.tag);
  if (!options.first)
    throw ConfigError("field: expected a first value that tells type and dimensions, got none");
  const FirstValue first = options.first();
  try {
    return std::make_unique<Shaped>(Shaped::tag_for(first.value));
  } catch (const DataError& error) {
    throw DataError(fmt::format("{}: {}", first.sample, error.what()));
  } catch (const ConfigError& error) {
    throw ConfigError(fmt::format("{}: {}", first.sample, error.what()));
  }
}

std::unique_ptr<Field> make_custom(const FieldOptions& options) {
  if (options.tag.kind != FieldTag::Kind::custom)
    throw ConfigError(
        "custom field: expected a source with a custom field, a .beton file, got another");
  return std::make_unique<CustomField>(options.tag.layout, options.arguments);
}

}  // namespace

Field::~Field() = default;

void register_fields(FieldRegistry& fields) {
  fields.add("image", "RGB image, as pixels or JPEG", [](const FieldOptions& options) {
    return std::make_unique<ImageField>(options.image);
  });
  fields.add("int", "64-bit integer",
             [](const FieldOptions&) { return std::make_unique<IntField>(); });
  fields.add("float", "64-bit float",
             [](const FieldOptions&) { return std::make_unique<FloatField>(); });
  fields.add("bytes", "bytes of any number",
             [](const FieldOptions&) { return std::make_unique<BytesField>(); });
  fields.add("json", "a JSON document",
             [](const FieldOptions&) { return std::make_unique<JsonField>(); });
  fields.add("ndarray", "array of one shape and type (numpy's)", [](const FieldOptions& options) {
    return std::make_unique<ArrayField>(FieldType::ndarray, options.array);
  });
  fields.add("tensor", "the same, as FFCV stores tensors of torch",
             [](const FieldOptions& options) {
               return std::make_unique<ArrayField>(FieldType::tensor, options.array);
             });
  fields.add("pixels", "lossless image of 1 to 4 channels of 8 or 16 bits, as bytes with a tag",
             [](const FieldOptions& options) {
               return make_shaped<PixelsField>(options, FieldTag::Kind::pixels);
             });
  fields.add("ragged", "array of one type and any shape, as bytes with a tag",
             [](const FieldOptions& options) {
               return make_shaped<RaggedField>(options, FieldTag::Kind::ragged);
             });
  fields.add("custom", "a custom field of another .beton file, as it is", make_custom);
}

}  // namespace precast::data
