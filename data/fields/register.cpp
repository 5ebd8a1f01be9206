#include "data/fields/register.h"

#include "data/fields/blob_fields.h"
#include "data/fields/number_fields.h"

namespace precast::data {

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
}

}  // namespace precast::data
