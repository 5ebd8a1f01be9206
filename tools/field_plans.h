#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "data/beton/write_dataset.h"
#include "data/fields/register.h"
#include "data/sources/source.h"

namespace precast::tools {

/// How the fields of a source are written.
/// @param chosen its fields, in its order, with the kinds that they shall have.
/// @param first a sample to look at, where a kind depends on it.
/// @param options of all fields; `source` and `registry` outlive the plans.
[[nodiscard]] std::vector<data::FieldPlan> plan_fields(const std::vector<data::SourceField>& chosen,
                                                       const data::Source& source,
                                                       std::uint64_t first,
                                                       const data::FieldOptions& options,
                                                       const data::FieldRegistry& registry);

/// The first of the samples of which all kinds of fields can be made that look at one: damaged ones
/// are passed over. After a thousand of these, the first.
[[nodiscard]] std::uint64_t first_sound(const std::vector<data::SourceField>& chosen,
                                        const data::Source& source,
                                        std::span<const std::uint64_t> samples,
                                        const data::FieldOptions& options,
                                        const data::FieldRegistry& registry);

/// Tries the kinds that are not the source's own on a sample. @param plans those of `chosen`, as
/// plan_fields() makes them of the other arguments. @throws ConfigError for one that does not take
/// such values
void check_kinds(const std::vector<data::FieldPlan>& plans,
                 const std::vector<data::SourceField>& chosen, const data::Source& source,
                 std::uint64_t first, const data::FieldOptions& options,
                 const data::FieldRegistry& registry);

}  // namespace precast::tools
