#include "data/fields/register.h"

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
}

}  // namespace precast::data
