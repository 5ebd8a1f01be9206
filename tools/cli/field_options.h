#pragma once

#include <boost/program_options/options_description.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "data/jobs/field_plans.h"
#include "data/sources/source.h"
#include "data/write/register.h"
#include "tools/cli/arguments.h"

namespace precast::tools {

/// Adds the options that each kind of field declares, as `--TYPE.OPTION`, such as
/// `--image.quality`.
/// @param image_mode the default of image.mode; empty: the field's own default.
void add_field_options(boost::program_options::options_description& options,
                       const data::FieldRegistry& fields, const std::string& image_mode = "");

/// The help of an option of add_field_options(), such as `image.quality`.
[[nodiscard]] std::string field_option_help(const data::FieldRegistry& fields,
                                            std::string_view name);

/// Parses the options, with the seed of --seed. @throws ConfigError for invalid values, and for
/// options that need another image.mode.
[[nodiscard]] data::FieldOptions field_options(const Arguments& arguments,
                                               const data::FieldRegistry& fields);

/// The first option of add_field_options() that was given; empty if none was.
[[nodiscard]] std::string given_field_option(const Arguments& arguments,
                                             const data::FieldRegistry& fields);

/// @throws ConfigError if an option is given for a kind that no field of the source has.
void check_field_options(const Arguments& arguments, const data::FieldRegistry& registry,
                         const std::vector<data::SourceField>& fields);

}  // namespace precast::tools
