#include "data/write/register.h"

#include <fmt/core.h>

#include "data/write/blob_fields.h"
#include "data/write/custom_field.h"
#include "data/write/image_field.h"
#include "data/write/number_fields.h"
#include "data/write/shaped_fields.h"
#include "framework/core/error.h"

namespace precast::data {
namespace {

/// Makes a field with the tag of the source's file or, if there is none, with the tag for the first
/// value.
template <typename Shaped>
std::unique_ptr<Field> make_shaped(const FieldInputs& inputs, FieldTag::Kind kind) {
  if (inputs.tag.kind == kind) return std::make_unique<Shaped>(inputs.tag);
  if (!inputs.first)
    throw ConfigError(
        "field: expected a first value, which determines type and dimensions, got none");
  const FirstValue first = inputs.first();
  try {
    return std::make_unique<Shaped>(Shaped::tag_for(first.value));
  } catch (const DataError& error) {
    throw DataError(fmt::format("{}: {}", first.sample, error.what()));
  } catch (const ConfigError& error) {
    throw ConfigError(fmt::format("{}: {}", first.sample, error.what()));
  }
}

std::unique_ptr<Field> make_image(const FieldInputs& inputs, const ImageFieldOptions& options) {
  ImageFieldOptions own = options;
  own.seed = inputs.seed;
  return std::make_unique<ImageField>(own);
}

std::unique_ptr<Field> make_custom(const FieldInputs& inputs) {
  if (inputs.tag.kind != FieldTag::Kind::custom)
    throw ConfigError(
        "custom field: expected a .beton file with a custom field as the source, got another kind "
        "of source");
  return std::make_unique<CustomField>(inputs.tag.layout, inputs.arguments);
}

}  // namespace

Field::~Field() = default;

void register_fields(FieldRegistry& fields) {
  fields.add("image", "RGB image, as pixels or JPEG", make_image);
  fields.add("int", "64-bit integer",
             [](const FieldInputs&) { return std::make_unique<IntField>(); });
  fields.add("float", "64-bit float",
             [](const FieldInputs&) { return std::make_unique<FloatField>(); });
  fields.add("bytes", "any number of bytes",
             [](const FieldInputs&) { return std::make_unique<BytesField>(); });
  fields.add("json", "a JSON document",
             [](const FieldInputs&) { return std::make_unique<JsonField>(); });
  fields.add("ndarray", "array of one shape and type, as FFCV stores numpy arrays",
             [](const FieldInputs& inputs) {
               return std::make_unique<ArrayField>(FieldType::ndarray, inputs.array);
             });
  fields.add("tensor", "array of one shape and type, as FFCV stores torch tensors",
             [](const FieldInputs& inputs) {
               return std::make_unique<ArrayField>(FieldType::tensor, inputs.array);
             });
  fields.add("pixels",
             "lossless image of 1 to 4 channels of any number type, as a bytes field with a tag",
             [](const FieldInputs& inputs) {
               return make_shaped<PixelsField>(inputs, FieldTag::Kind::pixels);
             });
  fields.add("ragged", "array of one type and any shape, as a bytes field with a tag",
             [](const FieldInputs& inputs) {
               return make_shaped<RaggedField>(inputs, FieldTag::Kind::ragged);
             });
  fields.add("custom", "a custom field of another .beton file, unchanged", make_custom);
}

FieldRegistry make_fields() {
  FieldRegistry fields("field");
  register_fields(fields);
  return fields;
}

}  // namespace precast::data
