#pragma once

#include <map>
#include <string>
#include <vector>

#include "data/sources/source.h"
#include "data/write/register.h"

namespace precast::tools {

/// The columns that --field-kind stores as text or as JSON, grouped by the option of table sources
/// that has the same effect: `texts` or `documents`. @param choices the values of --field-kind,
/// NAME=KIND.
[[nodiscard]] std::map<std::string, std::vector<std::string>> kept_columns(
    const std::vector<std::string>& choices);

/// The source's fields, in their order, with the kinds that --field-kind chooses. A field can be
/// named by the whole name of its column, or by the part that the file stores. @throws ConfigError
[[nodiscard]] std::vector<data::SourceField> choose_fields(const std::vector<std::string>& choices,
                                                           std::vector<data::SourceField> fields,
                                                           const data::FieldRegistry& registry);

/// The name of the field whose values are the source's classes. Empty if the source has no class
/// names, or if that field is not stored as an int. @param fields the result of choose_fields().
[[nodiscard]] std::string class_field_of(const data::Source& source,
                                         const std::vector<data::SourceField>& fields);

/// Prints which parts of the source became the image and the label, and which field the classes
/// come from, or could come from. @param fields the result of choose_fields().
void print_chosen_fields(const data::Source& source, const std::vector<data::SourceField>& fields);

}  // namespace precast::tools
