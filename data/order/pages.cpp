#include "data/order/pages.h"

#include <fmt/core.h>

#include <algorithm>
#include <optional>
#include <vector>

#include "data/beton/reader.h"
#include "data/beton/several_files.h"
#include "framework/core/error.h"
#include "framework/core/parse_number.h"

namespace precast::data {
namespace {

/// Returns nothing if `text` is not a number above 0.
std::optional<std::uint64_t> parse_mebibytes(std::string_view text) {
  const auto mebibytes = parse_number<std::uint64_t>(text);
  if (!mebibytes || *mebibytes == 0 || *mebibytes > UINT64_MAX >> 20) return std::nullopt;
  return mebibytes;
}

}  // namespace

std::uint64_t page_of(const BetonReader& reader, std::uint64_t sample) {
  for (std::size_t field = 0; field < reader.fields().size(); ++field) {
    if (reader.blob_bytes(sample, field) > 0)
      return reader.blob_offset(sample, field) / reader.header().page_bytes;
  }
  return kNoPage;
}

std::vector<std::uint64_t> pages_of(const BetonReader& reader, const SampleSet& members) {
  const bool merged = reader.num_files() > 1;
  const std::vector<std::uint64_t> merged_page_of =
      merged ? merged_pages(reader) : std::vector<std::uint64_t>{};
  std::vector<std::uint64_t> pages(members.size());
  for (std::uint64_t i = 0; i < pages.size(); ++i) {
    pages[i] = page_of(reader, members[i]);
    if (merged && pages[i] != kNoPage) pages[i] = merged_page_of[members[i]];
  }
  return pages;
}

std::uint64_t count_pages(const BetonReader& reader) {
  const std::uint64_t page_bytes = reader.header().page_bytes;
  std::vector<bool> filled(reader.file_bytes() / page_bytes + 1);
  const auto add = [&](std::uint64_t at) { filled[at / page_bytes] = true; };
  for (std::uint64_t sample = 0; sample < reader.size(); ++sample) {
    for (std::size_t field = 0; field < reader.fields().size(); ++field)
      if (reader.blob_bytes(sample, field) > 0) add(reader.blob_offset(sample, field));
    for (const Allocation& blob : reader.unclaimed(sample)) add(blob.pointer);
  }
  return static_cast<std::uint64_t>(std::ranges::count(filled, true));
}

bool is_window(std::string_view window) {
  return window == "auto" || window == "ffcv" || parse_mebibytes(window);
}

std::uint64_t window_pages(std::string_view window, std::int64_t batch_size,
                           std::uint64_t page_bytes, std::uint64_t memory_bytes) {
  const std::uint64_t ffcv_pages = 2 * static_cast<std::uint64_t>(batch_size);
  if (window == "ffcv" || (window == "auto" && memory_bytes == 0)) return ffcv_pages;
  if (window == "auto")
    return std::clamp<std::uint64_t>(memory_bytes / 4 / page_bytes, 1, ffcv_pages);
  const auto mebibytes = parse_mebibytes(window);
  if (!mebibytes) {
    throw ConfigError(fmt::format(
        "shuffle_window_mb: expected auto, ffcv or a number of MiB above 0, got '{}'", window));
  }
  return std::max<std::uint64_t>(1, (*mebibytes << 20) / page_bytes);
}

}  // namespace precast::data
