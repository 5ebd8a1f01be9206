#include "tools/bench/page_cache.h"

#include <fcntl.h>
#include <fmt/core.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <vector>

#include "framework/core/error.h"
#include "framework/core/file.h"

namespace precast::tools {

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
