#include "tools/bench/read_pass.h"

#include <fcntl.h>
#include <fmt/core.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstring>
#include <future>
#include <vector>

#include "framework/core/error.h"
#include "framework/core/file.h"

namespace precast::tools {
namespace {

std::uint64_t sum_bytes(std::span<const std::byte> bytes) {
  std::uint64_t sum = 0;
  for (const std::byte value : bytes) sum += static_cast<std::uint64_t>(value);
  return sum;
}

/// Reads the samples that `ticket` gives to one thread.
ReadPass read_share(const data::BetonReader& reader, std::size_t field,
                    std::atomic<std::uint64_t>& ticket) {
  ReadPass share;
  for (std::uint64_t sample = ticket++; sample < reader.size(); sample = ticket++) {
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
  std::atomic<std::uint64_t> ticket{0};
  std::vector<std::future<ReadPass>> shares;
  for (int i = 0; i < threads; ++i)
    shares.push_back(
        std::async(std::launch::async, [&] { return read_share(reader, field, ticket); }));
  ReadPass all;
  for (std::future<ReadPass>& share : shares) {
    const ReadPass own = share.get();
    all.images += own.images;
    all.bytes += own.bytes;
    all.sum += own.sum;
  }
  return all;
}

void drop_from_page_cache(const std::filesystem::path& path) {
  const int file = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (file < 0)
    throw IoError(fmt::format("{}: cannot open: {}", path.string(), std::strerror(errno)));
  ::fsync(file);  // the kernel does not drop dirty pages
  ::posix_fadvise(file, 0, 0, POSIX_FADV_DONTNEED);
  ::close(file);
}

double cached_share(const std::filesystem::path& path) {
  const MappedFile file(path);
  const auto page = static_cast<std::size_t>(::sysconf(_SC_PAGESIZE));
  std::vector<unsigned char> in_memory((file.bytes().size() + page - 1) / page);
  if (in_memory.empty()) return 0;
  // mincore() takes a pointer to non-const memory, but does not write to it.
  void* const begin = const_cast<std::byte*>(file.bytes().data());
  if (::mincore(begin, file.bytes().size(), in_memory.data()) != 0)
    throw IoError(fmt::format("{}: mincore: {}", path.string(), std::strerror(errno)));
  const auto cached = std::ranges::count_if(in_memory, [](auto flags) { return (flags & 1) != 0; });
  return static_cast<double>(cached) / static_cast<double>(in_memory.size());
}

}  // namespace precast::tools
