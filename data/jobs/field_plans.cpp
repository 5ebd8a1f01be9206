#include "data/jobs/field_plans.h"

#include <fmt/core.h>

#include <algorithm>
#include <cstddef>
#include <utility>

#include "framework/core/error.h"

namespace precast::data {

std::unique_ptr<Field> make_field(const FieldRegistry& registry, const std::string& type,
                                  const FieldOptions& options, FieldInputs inputs) {
  inputs.seed = options.seed;
  const auto part = options.parts.find(type);
  const ConfigNode none;
  return registry.make(
      {.name = type, .options = part == options.parts.end() ? none : part->second, .key = type},
      inputs);
}

std::vector<FieldPlan> plan_fields(const std::vector<SourceField>& chosen, const Source& source,
                                   std::uint64_t first, const FieldOptions& options,
                                   const FieldRegistry& registry) {
  std::vector<FieldPlan> fields;
  for (const SourceField& field : chosen) {
    FieldInputs inputs{.array = field.array, .tag = field.tag, .arguments = field.arguments};
    inputs.first = [&source, first, position = fields.size()] {
      Sample sample = source.sample(first);
      return FirstValue{std::move(sample.name), std::move(sample.values.at(position))};
    };
    fields.push_back({field.name, [&registry, options, inputs, type = field.type] {
                        return make_field(registry, type, options, inputs);
                      }});
  }
  return fields;
}

std::uint64_t find_usable_sample(const std::vector<SourceField>& chosen, const Source& source,
                                 std::span<const std::uint64_t> samples,
                                 const FieldOptions& options, const FieldRegistry& registry) {
  constexpr std::size_t kMaxTried = 1000;
  for (const std::uint64_t sample : samples.first(std::min(samples.size(), kMaxTried))) {
    try {
      for (const auto& plan : plan_fields(chosen, source, sample, options, registry))
        (void)plan.make();
      return sample;
    } catch (const DataError&) {
      continue;
    }
  }
  return samples[0];
}

void check_kinds(const std::vector<FieldPlan>& plans, const std::vector<SourceField>& chosen,
                 const Source& source, std::uint64_t first, const FieldOptions& options,
                 const FieldRegistry& registry) {
  const auto own = plan_fields(source.fields(), source, first, options, registry);
  EncodedValue encoded;
  for (std::size_t i = 0; i < chosen.size(); ++i) {
    if (chosen[i].type == source.fields()[i].type) continue;
    Sample sample;
    try {
      sample = source.sample(first);
      own[i].make()->encode(sample.values.at(i), first, encoded);
    } catch (const DataError&) {
      continue;  // The sample is damaged, whatever the kind; writing it reports the error.
    }
    try {
      plans[i].make()->encode(sample.values.at(i), first, encoded);
    } catch (const DataError& error) {
      throw ConfigError(
          fmt::format("--field-kind {}={}: {}", chosen[i].name, chosen[i].type, error.what()));
    }
  }
}

}  // namespace precast::data
