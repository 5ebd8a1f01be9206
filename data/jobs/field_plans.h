#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "data/jobs/write_dataset.h"
#include "data/sources/source.h"
#include "data/write/register.h"

namespace precast::data {

/// The user's options for fields: `parts` maps a field's registered type to its options, and `seed`
/// is the seed of random choices.
struct FieldOptions {
  std::map<std::string, ConfigNode> parts = {};
  std::uint64_t seed = 0;
};

/// Creates a field with the given options. @throws ConfigError for unknown or wrong options, naming
/// TYPE.OPTION.
[[nodiscard]] PRECAST_API std::unique_ptr<Field> make_field(const FieldRegistry& registry,
                                                            const std::string& type,
                                                            const FieldOptions& options,
                                                            FieldInputs inputs = {});

/// Returns one plan for each chosen field.
/// @param chosen the fields of the source, in the source's order, each with the kind to write.
/// @param first the sample from which a kind reads its description, such as the number of channels,
/// if the source does not give it.
/// @param source, registry borrowed; both must outlive the plans. @param options the options of all
/// fields.
[[nodiscard]] PRECAST_API std::vector<FieldPlan> plan_fields(const std::vector<SourceField>& chosen,
                                                             const Source& source,
                                                             std::uint64_t first,
                                                             const FieldOptions& options,
                                                             const FieldRegistry& registry);

/// Returns the first of `samples` for which all fields can be made. If there is no such sample
/// among the first 1,000, returns samples[0].
[[nodiscard]] PRECAST_API std::uint64_t find_usable_sample(const std::vector<SourceField>& chosen,
                                                           const Source& source,
                                                           std::span<const std::uint64_t> samples,
                                                           const FieldOptions& options,
                                                           const FieldRegistry& registry);

/// Tries to encode one sample with each field whose kind differs from the kind in the source.
/// @param plans the result of plan_fields() for the other arguments. @param first the sample to
/// encode. @throws ConfigError if a kind does not accept the field's value.
PRECAST_API void check_kinds(const std::vector<FieldPlan>& plans,
                             const std::vector<SourceField>& chosen, const Source& source,
                             std::uint64_t first, const FieldOptions& options,
                             const FieldRegistry& registry);

}  // namespace precast::data
