#pragma once

#include <cstdint>
#include <filesystem>
#include <string_view>

#include "data/order/subset.h"
#include "framework/core/export.h"

namespace precast::data {

/// Reads a list of samples, of `size` that there are: a number a line, counted from 0, or a range
/// A:B, which ends before B. Empty lines and lines that begin with # are skipped. The lines may be
/// in any order.
/// @param place the dataset, for messages. @throws ConfigError naming file and line for any other
/// text, a number that is not below `size`, and a sample that is listed twice; naming the file if
/// it lists none. IoError if it cannot be read.
[[nodiscard]] PRECAST_API Members read_sample_list(const std::filesystem::path& file,
                                                   std::uint64_t size, std::string_view place);

}  // namespace precast::data
