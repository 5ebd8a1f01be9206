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

/// The user's choices for fields: options by the field's registered type, and the seed of random
/// choices.
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

/// How the fields of a source are written.
/// @param chosen its fields, in its order, with the kinds to write them as.
/// @param first a sample to inspect, for kinds that depend on one.
/// @param options of all fields; `source` and `registry` outlive the plans.
[[nodiscard]] PRECAST_API std::vector<FieldPlan> plan_fields(const std::vector<SourceField>& chosen,
                                                             const Source& source,
                                                             std::uint64_t first,
                                                             const FieldOptions& options,
                                                             const FieldRegistry& registry);

/// The first intact sample from which the fields that depend on a sample can be made. After a
/// thousand damaged samples, returns the first sample.
[[nodiscard]] PRECAST_API std::uint64_t first_sound(const std::vector<SourceField>& chosen,
                                                    const Source& source,
                                                    std::span<const std::uint64_t> samples,
                                                    const FieldOptions& options,
                                                    const FieldRegistry& registry);

/// For each field whose kind differs from the source's, tries to encode a sample with that kind.
/// @param plans those of `chosen`, as plan_fields() makes them from the other arguments. @throws
/// ConfigError for a kind that does not accept such values
PRECAST_API void check_kinds(const std::vector<FieldPlan>& plans,
                             const std::vector<SourceField>& chosen, const Source& source,
                             std::uint64_t first, const FieldOptions& options,
                             const FieldRegistry& registry);

}  // namespace precast::data
