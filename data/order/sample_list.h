#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>

#include "data/order/subset.h"
#include "framework/core/export.h"

namespace precast::data {

/// A decimal number; nothing if the string is empty or contains anything else.
[[nodiscard]] std::optional<std::uint64_t> parse_count(std::string_view text);

/// A list of samples of a dataset with `size` samples. Each line is a number, counted from 0, or a
/// range A:B, which ends before B; lines may be in any order. Empty lines and comments after a #
/// are skipped.
/// @param file its name, and @param place the dataset, for messages. @throws ConfigError naming
/// file and line for any other text, a number that is not below `size`, and a sample that is listed
/// twice; naming the file if it lists no sample.
[[nodiscard]] PRECAST_API Members parse_sample_list(std::string_view text, const std::string& file,
                                                    std::uint64_t size, std::string_view place);
/// parse_sample_list() of a file. Also @throws ConfigError if the file cannot be read.
[[nodiscard]] PRECAST_API Members read_sample_list(const std::filesystem::path& file,
                                                   std::uint64_t size, std::string_view place);

}  // namespace precast::data
