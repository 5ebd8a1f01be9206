#pragma once

#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <vector>

#include "data/beton/reader.h"
#include "tools/cli/arguments.h"

namespace precast::tools {

/// How the samples of --where, --samples and --classes, or all, are distributed: `field_bytes`,
/// `classes` [{label, name, count}] (up to 10,000), `longer_side` [{from, to, count}] of the first
/// image, in pixels, `to` not in. Where one of those options is given, `chosen` and `ids`, too.
/// @param chosen what choose_samples() gave.
[[nodiscard]] nlohmann::ordered_json describe_chosen(
    const Arguments& arguments, const data::BetonReader& reader,
    const std::optional<std::vector<std::uint64_t>>& chosen);
/// As bars.
void print_chosen(const nlohmann::ordered_json& report);

}  // namespace precast::tools
