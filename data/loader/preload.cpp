#include "data/loader/preload.h"

#include <fmt/core.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdint>
#include <filesystem>
#include <span>

#include "data/beton/reader.h"
#include "data/cache/fetch_ahead.h"
#include "framework/core/cancel.h"
#include "framework/core/error.h"
#include "framework/core/failpoint.h"
#include "framework/core/system.h"

namespace precast::data {
namespace {

/// MADV_POPULATE_READ, which exists since Linux 5.14. Headers older than those of Debian 12 do not
/// define it.
constexpr int kPopulateRead = 22;
constexpr std::size_t kChunkBytes = std::size_t{64} << 20;

/// Reads one byte per memory page. Used if the kernel has no MADV_POPULATE_READ, or interrupts it.
void touch(const std::byte* from, std::size_t bytes) {
  const auto page = static_cast<std::size_t>(::sysconf(_SC_PAGESIZE));
  for (std::size_t at = 0; at < bytes; at += page) {
    const volatile std::byte* byte = from + at;
    static_cast<void>(*byte);
  }
}

/// Loads a complete mapped file, unless `*cancel` becomes true.
void load_all(std::span<const std::byte> bytes, const std::filesystem::path& path,
              const std::atomic<bool>* cancel) {
  for (std::size_t at = 0; at < bytes.size() && !is_set(cancel); at += kChunkBytes) {
    const std::size_t count = std::min(kChunkBytes, bytes.size() - at);
    // madvise() needs an address at the start of a memory page: the mapping and every chunk begin
    // there.
    auto* chunk = const_cast<std::byte*>(bytes.data() + at);
    if (::madvise(chunk, count, kPopulateRead) == 0) continue;
    if (errno != EINVAL && errno != EINTR && errno != EAGAIN)
      throw IoError("cannot load", path.string(), errno);
    touch(chunk, count);
  }
}

}  // namespace

void preload(const BetonReader& reader, const std::atomic<bool>* cancel) {
  const std::uint64_t limit = memory_limit_bytes();
  if (limit > 0 && reader.file_bytes() > limit / 10 * 9) {
    throw ConfigError(fmt::format(
        "data.in_memory: expected a file of at most nine tenths of the memory limit for the "
        "setting "
        "2 (load the file before training starts), got {} with {} MiB and a memory limit of {} "
        "MiB. Use 1, or 0 with data.order: quasi_random",
        reader.path().string(), reader.file_bytes() >> 20, limit >> 20));
  }
  failpoint("preload.before_dataset");
  fetch_all(reader, cancel);
  for (const BetonReader& file : reader.files()) load_all(file.bytes(), file.path(), cancel);
}

}  // namespace precast::data
