#include "data/decode/shared_checkpoints.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <memory>
#include <new>
#include <random>

namespace precast::data {

/// Written before other processes get the address; only `used` and `full` change later.
struct SharedCheckpoints::Header {
  /// A random number that distinguishes this memory from the memory of a process with the same id
  /// on another host.
  std::uint64_t token = 0;
  std::uint64_t samples = 0;
  std::uint64_t interval = 0;
  /// Number of elements of numbers() in use, including those of add() calls that failed because
  /// they did not fit.
  std::atomic<std::uint64_t> used{1};
  /// Set when a sample's checkpoints do not fit.
  std::atomic<bool> full{false};
};

namespace {

static_assert(std::atomic<std::uint64_t>::is_always_lock_free, "shared by processes");
constexpr const char* kMemoryName = "precast-jpeg-index";
/// The target of the link /proc/PID/fd/N of such memory begins with this text.
constexpr const char* kMemoryLink = "/memfd:precast-jpeg-index";
constexpr std::uint64_t kWord = sizeof(std::uint64_t);
/// 256 GiB, more than any dataset's checkpoints take. A larger limit could exceed the address
/// space.
constexpr std::uint64_t kMaxBytes = std::uint64_t{1} << 38;

std::uint64_t draw_token() {
  std::random_device source;
  return std::uint64_t{source()} << 32 | source();
}

}  // namespace

SharedCheckpoints::SharedCheckpoints(int fd, void* mapping, std::uint64_t mapped_bytes)
    : fd_(fd), header_(static_cast<Header*>(mapping)), mapped_bytes_(mapped_bytes) {}

SharedCheckpoints::~SharedCheckpoints() {
  ::munmap(header_, mapped_bytes_);
  ::close(fd_);
}

std::unique_ptr<SharedCheckpoints> SharedCheckpoints::map(int fd, std::uint64_t bytes) {
  void* const at = ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
  if (at != MAP_FAILED)
    return std::unique_ptr<SharedCheckpoints>(new SharedCheckpoints(fd, at, bytes));
  ::close(fd);
  return nullptr;
}

std::unique_ptr<SharedCheckpoints> SharedCheckpoints::make(std::uint64_t samples,
                                                           std::size_t interval,
                                                           std::uint64_t max_bytes) {
  const std::uint64_t bytes =
      sizeof(Header) + (samples + 1) * kWord + std::min(max_bytes, kMaxBytes) / kWord * kWord;
  const int fd = ::memfd_create(kMemoryName, MFD_CLOEXEC);
  if (fd < 0) return nullptr;
  if (::ftruncate(fd, static_cast<off_t>(bytes)) != 0) {
    ::close(fd);
    return nullptr;
  }
  auto made = map(fd, bytes);
  if (made == nullptr) return nullptr;
  // In a new file, all other bytes are 0.
  auto* const header = new (made->header_) Header;
  header->token = draw_token();
  header->samples = samples;
  header->interval = interval;
  return made;
}

std::unique_ptr<SharedCheckpoints> SharedCheckpoints::open(const std::string& address,
                                                           std::uint64_t samples,
                                                           std::size_t interval) {
  const std::size_t colon = address.find(':');
  if (colon == std::string::npos) return nullptr;
  const std::string path = address.substr(0, colon);
  // On another host, the path may refer to something else, such as a terminal or a pipe, which must
  // not be opened.
  std::error_code error;
  if (!std::filesystem::read_symlink(path, error).string().starts_with(kMemoryLink)) return nullptr;
  const int fd = ::open(path.c_str(), O_RDWR | O_CLOEXEC);
  if (fd < 0) return nullptr;
  struct stat status {};
  const std::uint64_t min_bytes = sizeof(Header) + (samples + 1) * kWord;
  if (::fstat(fd, &status) != 0 || static_cast<std::uint64_t>(status.st_size) < min_bytes) {
    ::close(fd);
    return nullptr;
  }
  auto opened = map(fd, static_cast<std::uint64_t>(status.st_size));
  if (opened == nullptr) return nullptr;
  const Header& header = *opened->header_;
  const bool same = fmt::format("{:016x}", header.token) == address.substr(colon + 1) &&
                    header.samples == samples && header.interval == interval;
  return same ? std::move(opened) : nullptr;
}

std::string SharedCheckpoints::address() const {
  return fmt::format("/proc/{}/fd/{}:{:016x}", ::getpid(), fd_, header_->token);
}

std::span<std::atomic<std::uint64_t>> SharedCheckpoints::entries() const {
  return {reinterpret_cast<std::atomic<std::uint64_t>*>(header_ + 1), header_->samples};
}

std::span<std::uint64_t> SharedCheckpoints::numbers() const {
  auto* const begin = reinterpret_cast<std::uint64_t*>(header_ + 1) + header_->samples;
  return {begin, (mapped_bytes_ - sizeof(Header)) / kWord - header_->samples};
}

JpegCheckpoints SharedCheckpoints::find(std::uint64_t sample) const {
  const std::uint64_t at = entries()[sample].load(std::memory_order_acquire);
  if (at == 0) return {};
  return {header_->interval, numbers().subspan(at + 1, numbers()[at])};
}

bool SharedCheckpoints::accepts(std::uint64_t sample) const {
  return entries()[sample].load(std::memory_order_relaxed) == 0 &&
         !header_->full.load(std::memory_order_relaxed);
}

void SharedCheckpoints::add(std::uint64_t sample, std::span<const std::uint64_t> points) {
  if (!accepts(sample)) return;
  const std::span<std::uint64_t> numbers = this->numbers();
  const std::uint64_t at = header_->used.fetch_add(points.size() + 1, std::memory_order_relaxed);
  if (at > numbers.size() || points.size() + 1 > numbers.size() - at) {
    header_->full.store(true, std::memory_order_relaxed);
    return;
  }
  numbers[at] = points.size();
  std::ranges::copy(points, numbers.begin() + static_cast<std::ptrdiff_t>(at) + 1);
  // If two processes add the same sample at the same time, the memory that one of them used is
  // wasted.
  std::uint64_t unknown = 0;
  entries()[sample].compare_exchange_strong(unknown, at, std::memory_order_release,
                                            std::memory_order_relaxed);
}

std::uint64_t SharedCheckpoints::bytes() const {
  const std::uint64_t used = header_->used.load(std::memory_order_relaxed);
  return sizeof(Header) +
         (header_->samples + std::min<std::uint64_t>(used, numbers().size())) * kWord;
}

}  // namespace precast::data
