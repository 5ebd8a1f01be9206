#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "data/order/subset.h"
#include "framework/core/export.h"

namespace precast::data {

class BetonReader;

/// Used as the page number of samples without large values, or with empty ones only.
inline constexpr std::uint64_t kNoPage = UINT64_MAX;

/// The number of the page (counted from 0 at the start of the file) that contains the sample's
/// first large value that is not empty, in most files an image; kNoPage if the sample has no such
/// value.
[[nodiscard]] PRECAST_API std::uint64_t page_of(const BetonReader& reader, std::uint64_t sample);

/// The page of each member, or kNoPage. For one file, this is page_of(); for several files, it is
/// the page in the file that `precast merge` would write from them (merged_pages()), so that an
/// order by pages does not depend on how many files a dataset has.
[[nodiscard]] PRECAST_API std::vector<std::uint64_t> pages_of(const BetonReader& reader,
                                                              const SampleSet& members);

/// The number of pages with values in one file.
[[nodiscard]] PRECAST_API std::uint64_t count_pages(const BetonReader& reader);

/// The number of pages, of `page_bytes` bytes each, that quasi_random keeps open at the same time.
/// At least 1. @param window "auto": 2 x batch_size pages, or a quarter of `memory_bytes` if that
/// is less; "ffcv": 2 x batch_size pages; or a number of MiB. @param batch_size samples in a batch
/// of all ranks together. @param memory_bytes 0: unknown; "auto" then means "ffcv". @throws
/// ConfigError for any other string.
[[nodiscard]] PRECAST_API std::uint64_t window_pages(std::string_view window,
                                                     std::int64_t batch_size,
                                                     std::uint64_t page_bytes,
                                                     std::uint64_t memory_bytes);

/// Whether window_pages() accepts the text.
[[nodiscard]] PRECAST_API bool is_window(std::string_view window);

}  // namespace precast::data
