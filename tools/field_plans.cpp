#include "tools/field_plans.h"

#include <cstddef>
#include <utility>

namespace precast::tools {

std::vector<data::FieldPlan> plan_fields(const std::vector<data::SourceField>& chosen,
                                         const data::Source& source, std::uint64_t first,
                                         const data::FieldOptions& options,
                                         const data::FieldRegistry& registry) {
  std::vector<data::FieldPlan> fields;
  for (const data::SourceField& field : chosen) {
    data::FieldOptions own = options;
    own.array = field.array;
    own.tag = field.tag;
    own.arguments = field.arguments;
    own.first = [&source, first, place = fields.size()] {
      data::Sample sample = source.sample(first);
      return data::FirstValue{std::move(sample.name), std::move(sample.values.at(place))};
    };
    fields.push_back(
        {field.name, [&registry, own, type = field.type] { return registry.create(type, own); }});
  }
  return fields;
}

}  // namespace precast::tools
