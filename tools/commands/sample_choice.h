#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "data/beton/reader.h"
#include "tools/cli/arguments.h"

namespace precast::tools {

/// Declares --where, --samples, --classes and --label_field: which samples of a file are meant.
void add_choice_options(Arguments& arguments);

/// The samples that all of those options leave, ascending; nothing if none of them is given.
/// @throws ConfigError; DataError if none is left.
[[nodiscard]] std::optional<std::vector<std::uint64_t>> choose_samples(
    const Arguments& arguments, const data::BetonReader& reader);

/// The same, all of the file's where no option is given.
[[nodiscard]] std::vector<std::uint64_t> chosen_samples(const Arguments& arguments,
                                                        const data::BetonReader& reader);

/// Of --label_field, or the first int field. @throws ConfigError
[[nodiscard]] std::size_t chosen_label_field(const Arguments& arguments,
                                             const data::BetonReader& reader);

/// Reads `0:100,5,200:`; a range ends before its second number, or at `end`.
/// @return ascending, each once. @throws ConfigError naming the option for what is not below `end`.
[[nodiscard]] std::vector<std::uint64_t> parse_ranges(std::string_view option,
                                                      std::string_view text, std::uint64_t end);

}  // namespace precast::tools
