#pragma once

#include <nlohmann/json_fwd.hpp>

#include "data/beton/reader.h"
#include "tools/cli/arguments.h"

namespace precast::tools {

/// Declares --order and the options that belong to it.
void add_order_options(Arguments& arguments);

/// What --order makes of the file: how many classes and pages its batches meet, beside a random
/// order. Labels are the first integer field; without one there is nothing about classes.
[[nodiscard]] nlohmann::ordered_json describe_order(const data::BetonReader& reader,
                                                    const Arguments& arguments);
void print_order(const nlohmann::ordered_json& report);

}  // namespace precast::tools
