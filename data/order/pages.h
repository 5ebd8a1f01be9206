#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "data/order/subset.h"
#include "framework/core/export.h"

namespace precast::data {

class BetonReader;

/// Used as the page number of samples without bytes.
inline constexpr std::uint64_t kNoPage = UINT64_MAX;

/// The page of the sample's first field with bytes, which is an image in most files. Pages are
/// counted from the start of the file. kNoPage if the sample has no bytes.
[[nodiscard]] PRECAST_API std::uint64_t page_of(const BetonReader& reader, std::uint64_t sample);

/// The page of each of these samples. For one file, this is page_of(); for several files, the page
/// in the merged file (merged_pages()), so that an order by pages does not depend on the number of
/// files of a dataset.
[[nodiscard]] PRECAST_API std::vector<std::uint64_t> pages_of(const BetonReader& reader,
                                                              const Members& members);

/// The number of pages with values in one file.
[[nodiscard]] PRECAST_API std::uint64_t count_pages(const BetonReader& reader);

/// The number of pages, of `page_bytes` bytes each, that quasi_random keeps open at the same time.
/// @param window "auto": 2 x batch_size pages, or a quarter of `memory_bytes` (0: unknown) if that
/// is less; "ffcv": 2 x batch_size pages; or a number of MiB. At least 1. @throws ConfigError for
/// any other string.
[[nodiscard]] PRECAST_API std::uint64_t window_pages(std::string_view window,
                                                     std::int64_t batch_size,
                                                     std::uint64_t page_bytes,
                                                     std::uint64_t memory_bytes);

/// Whether window_pages() accepts the text.
[[nodiscard]] PRECAST_API bool is_window(std::string_view window);

}  // namespace precast::data
