#include "data/loader/memory_plan.h"

#include <fmt/core.h>

#include <nlohmann/json.hpp>

namespace precast::data {
namespace {

std::string size_text(std::uint64_t bytes) {
  constexpr double kMebibyte = 1 << 20;
  const double mebibytes = static_cast<double>(bytes) / kMebibyte;
  if (mebibytes >= 10 * 1024) return fmt::format("{:.1f} GiB", mebibytes / 1024);
  return mebibytes < 10 ? fmt::format("{:.1f} MiB", mebibytes)
                        : fmt::format("{:.0f} MiB", mebibytes);
}

}  // namespace

std::string MemoryPlan::text() const {
  std::string line =
      mapped > 0 ? fmt::format("{} mapped (page cache, shared); ", size_text(mapped)) : "";
  line += fmt::format("{} own:", size_text(own()));
  if (cache > 0) line += fmt::format(" page pool {},", size_text(cache));
  line += fmt::format(" batches {}{}, decoders {}, metadata {}, order {}", size_text(batches),
                      batches_locked ? " (page-locked)" : "", size_text(decoders),
                      size_text(metadata), size_text(order));
  if (index > 0) line += fmt::format(", JPEG index {}", size_text(index));
  return line;
}

nlohmann::ordered_json MemoryPlan::json() const {
  return {{"mapped_bytes", mapped},
          {"own_bytes", own()},
          {"cache_bytes", cache},
          {"batch_bytes", batches},
          {"batches_page_locked", batches_locked},
          {"decoder_bytes", decoders},
          {"metadata_bytes", metadata},
          {"order_bytes", order},
          {"index_bytes", index}};
}

}  // namespace precast::data
