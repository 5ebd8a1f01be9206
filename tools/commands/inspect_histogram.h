#pragma once

#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <vector>

#include "data/beton/reader.h"
#include "tools/cli/arguments.h"

namespace precast::tools {

/// The distribution of the samples that --where, --samples and --classes select, or of all samples:
/// `field_bytes`; `classes` [{label, name, count}], empty if there are more than 10,000;
/// `longer_side` [{from, to, count}] of the first image field, in pixels, `to` exclusive. If one of
/// those options is given, also `chosen` (the number of samples) and `ids`.
/// @param chosen the result of choose_samples().
[[nodiscard]] nlohmann::ordered_json describe_chosen(
    const Arguments& arguments, const data::BetonReader& reader,
    const std::optional<std::vector<std::uint64_t>>& chosen);
/// Prints the result of describe_chosen(), with the distributions as bars.
void print_chosen(const nlohmann::ordered_json& report);

}  // namespace precast::tools
