#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "data/beton/reader.h"
#include "tools/cli/arguments.h"

namespace precast::tools {

/// Declares --where, --samples, --classes and --label-field, which select samples of a file.
void add_choice_options(Arguments& arguments);

/// The samples that match all of --where, --samples and --classes, ascending; nullopt if none of
/// the three is given.
/// @throws ConfigError; DataError if no sample matches.
[[nodiscard]] std::optional<std::vector<std::uint64_t>> choose_samples(
    const Arguments& arguments, const data::BetonReader& reader);

/// The result of choose_samples() or, if that is nullopt, all samples of the file.
[[nodiscard]] std::vector<std::uint64_t> choose_samples_or_all(const Arguments& arguments,
                                                               const data::BetonReader& reader);

/// The field of --label-field, or data::default_label_field(). @throws ConfigError
[[nodiscard]] std::size_t chosen_label_field(const Arguments& arguments,
                                             const data::BetonReader& reader);

/// Parses a choice among `size` samples: ranges such as `0:100,5,200:` (parse_ranges()), or
/// `random:N`, `random:N:SEED` or `@FILE` (data::choose_subset()). @return their ids, ascending.
/// @throws ConfigError naming the option
[[nodiscard]] std::vector<std::uint64_t> parse_samples(std::string_view option,
                                                       const std::string& text, std::uint64_t size);

/// Parses `0:100,5,200:`. The end of a range is exclusive; if it is left out, it is `end`.
/// @return the numbers, ascending, without duplicates. @throws ConfigError naming the option, also
/// for a range that contains a number that is not below `end`.
[[nodiscard]] std::vector<std::uint64_t> parse_ranges(std::string_view option,
                                                      std::string_view text, std::uint64_t end);

}  // namespace precast::tools
