#pragma once

#include <nlohmann/json_fwd.hpp>

#include "data/beton/reader.h"
#include "tools/cli/arguments.h"

namespace precast::tools {

/// Declares --order and its related options.
void add_order_options(Arguments& arguments);

/// The effect of --order: how many pages a batch touches on average, and how many classes it
/// contains, compared with a random order. The classes are those of --label-field, or of
/// data::default_label_field(); if there is no int field, they are left out. @throws ConfigError
[[nodiscard]] nlohmann::ordered_json describe_order(const data::BetonReader& reader,
                                                    const Arguments& arguments);
void print_order(const nlohmann::ordered_json& report);

}  // namespace precast::tools
