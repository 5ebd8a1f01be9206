#include "tools/bench/read_pass.h"

#include <fmt/core.h>

#include <atomic>
#include <future>
#include <vector>

#include "framework/core/error.h"

namespace precast::tools {
namespace {

std::uint64_t sum_bytes(std::span<const std::byte> bytes) {
  std::uint64_t sum = 0;
  for (const std::byte value : bytes) sum += static_cast<std::uint64_t>(value);
  return sum;
}

/// Reads images on one thread. The threads take their samples from the shared counter
/// `next_sample`.
ReadPass read_share(const data::BetonReader& reader, std::size_t field,
                    std::atomic<std::uint64_t>& next_sample) {
  ReadPass share;
  for (std::uint64_t sample = next_sample++; sample < reader.size(); sample = next_sample++) {
    const auto image = reader.image(sample, field).bytes;
    ++share.images;
    share.bytes += image.size();
    share.sum += sum_bytes(image);
  }
  return share;
}

}  // namespace

ReadPass read_all_images(const data::BetonReader& reader, int threads) {
  const std::size_t field = reader.first_field(data::FieldType::image);
  if (field >= reader.fields().size())
    throw DataError(
        fmt::format("{}: expected an RGB image field, got none", reader.path().string()));
  std::atomic<std::uint64_t> next_sample{0};
  std::vector<std::future<ReadPass>> shares;
  for (int i = 0; i < threads; ++i)
    shares.push_back(
        std::async(std::launch::async, [&] { return read_share(reader, field, next_sample); }));
  ReadPass all;
  for (std::future<ReadPass>& share : shares) {
    const ReadPass own = share.get();
    all.images += own.images;
    all.bytes += own.bytes;
    all.sum += own.sum;
  }
  return all;
}

}  // namespace precast::tools
