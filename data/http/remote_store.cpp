#include "data/http/remote_store.h"

#include <fcntl.h>
#include <fmt/core.h>
#include <sys/mman.h>
#include <sys/vfs.h>
#include <unistd.h>
#include <xxhash.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cctype>
#include <cerrno>
#include <chrono>
#include <fstream>
#include <iterator>
#include <string_view>
#include <system_error>
#include <thread>
#include <utility>

#include "framework/core/error.h"
#include "framework/core/failpoint.h"
#include "framework/core/log.h"
#include "framework/core/lower_case.h"
#include "framework/core/parse_number.h"

namespace precast::data {
namespace {

/// Spells `PCREMOT1` in a file.
constexpr std::uint64_t kMagic = 0x31544f4d45524350;
constexpr std::size_t kRanges = 100;
/// The offset at which the hashes of the values begin in the state file.
constexpr std::uint64_t kValuesAt = 4096;
/// Offset of the byte that is locked while the table of ranges is changed; beyond the end of any
/// file.
constexpr std::uint64_t kTableLock = std::uint64_t{1} << 62;
constexpr double kTableLockLimitS = 10;

std::uint64_t read_hash(const std::uint64_t& from) {
  return __atomic_load_n(&from, __ATOMIC_ACQUIRE);
}
void write_hash(std::uint64_t& to, std::uint64_t hash) {
  __atomic_store_n(&to, hash, __ATOMIC_RELEASE);
}

int open_shared(const std::filesystem::path& path) {
  const int fd =
      retry_on_eintr([&] { return ::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0666); });
  if (fd < 0) throw IoError("cannot open the cache of a remote dataset,", path.string(), errno);
  return fd;
}

/// Whether a query parameter belongs to the signature of a pre-signed URL of Amazon S3, CloudFront,
/// Google Cloud Storage or Azure Blob Storage. Each access may have a new signature.
bool is_signature_parameter(std::string_view parameter) {
  constexpr std::string_view kNames[] = {"awsaccesskeyid",
                                         "signature",
                                         "expires",
                                         "key-pair-id",
                                         "policy",
                                         "sig",
                                         "se",
                                         "st",
                                         "sp",
                                         "sv",
                                         "sr",
                                         "skoid",
                                         "sktid",
                                         "skt",
                                         "ske",
                                         "sks",
                                         "skv",
                                         "spr"};
  const std::string name = lower_case(parameter.substr(0, parameter.find('=')));
  return name.starts_with("x-amz-") || name.starts_with("x-goog-") ||
         std::ranges::find(kNames, name) != std::end(kNames);
}

/// Returns the part of the URL that identifies the file: without user name, password and signature.
std::string identity_of(std::string_view url) {
  std::string identity = redacted_url(url);
  url = url.substr(0, url.find('#'));
  char before = '?';
  for (std::size_t at = url.find('?'); at != std::string_view::npos;) {
    url.remove_prefix(at + 1);
    at = url.find('&');
    const std::string_view parameter = url.substr(0, at);
    if (is_signature_parameter(parameter)) continue;
    identity += std::exchange(before, '&');
    identity += parameter;
  }
  return identity;
}

/// Combines the file's name in the URL and a hash of everything that identifies the version.
std::string folder_name(const std::string& url, const HttpVersion& version) {
  const std::string redacted = redacted_url(url);
  std::string name = redacted.substr(redacted.rfind('/') + 1, 80);
  std::ranges::replace_if(
      name, [](char c) { return !std::isalnum(static_cast<unsigned char>(c)) && c != '.'; }, '_');
  const std::string identity = fmt::format("{}\n{}\n{}\n{}", identity_of(url), version.size,
                                           version.etag, version.last_modified);
  const XXH128_hash_t hash = XXH3_128bits(identity.data(), identity.size());
  return fmt::format("{}-{:016x}{:016x}", name, hash.high64, hash.low64);
}

/// Name of the file that contains the version of a copy: size, ETag and Last-Modified, one per
/// line.
constexpr const char* kVersionFile = "version";

std::optional<HttpVersion> read_version(const std::filesystem::path& folder) {
  std::ifstream file(folder / kVersionFile);
  HttpVersion version;
  std::string size;
  std::getline(file, size);
  std::getline(file, version.etag);
  std::getline(file, version.last_modified);
  const auto bytes = parse_number<decltype(version.size)>(size);
  if (!file || !bytes) return std::nullopt;
  version.size = *bytes;
  return version;
}

void write_version(const std::filesystem::path& folder, const HttpVersion& version) {
  if (read_version(folder) == version) return;
  write_file(folder / kVersionFile,
             fmt::format("{}\n{}\n{}\n", version.size, version.etag, version.last_modified));
}

void warn_if_on_network(const std::filesystem::path& folder) {
  static std::atomic<bool> warned{false};
  struct statfs system {};
  if (::statfs(folder.c_str(), &system) != 0) return;
  const auto type = static_cast<std::uint32_t>(system.f_type);
  constexpr std::uint32_t kFuse = 0x65735546;
  if ((type != kFuse && !is_network_file_system(type)) || warned.exchange(true)) return;
  log_warning(
      "data.cache_dir: expected a folder on a local disk, got {}, which {}. Reading from it can be "
      "slow",
      folder.string(),
      type == kFuse ? "is on a FUSE file system, which may be on a network"
                    : "is on a network file system");
}

}  // namespace

bool is_network_file_system(std::uint64_t type) {
  // From Linux's magic.h and the file systems' own headers.
  constexpr std::array<std::uint64_t, 10> kTypes = {0x6969,       // NFS
                                                    0x0bd00bd0,   // Lustre
                                                    0x47504653,   // GPFS
                                                    0x517b,       // SMB 1
                                                    0xff534d42,   // CIFS
                                                    0xfe534d42,   // CIFS, SMB 2 and later
                                                    0x00c36400,   // Ceph
                                                    0x19830326,   // BeeGFS
                                                    0x5346414f,   // AFS
                                                    0x01021997};  // 9p
  return std::ranges::find(kTypes, type) != kTypes.end();
}

std::uint64_t stored_hash(std::span<const std::byte> bytes) {
  return std::max<std::uint64_t>(1, XXH3_64bits(bytes.data(), bytes.size()));
}

/// The header of the state file.
struct RemoteStore::State {
  struct Range {
    std::uint64_t begin;
    std::uint64_t end;
    std::uint64_t hash;
  };
  std::uint64_t magic;
  std::array<Range, kRanges> ranges;
};

struct RemoteStore::Mapping {
  Mapping(int fd, std::uint64_t size, const std::filesystem::path& folder) : bytes(size) {
    // Disk space is allocated now, so that a full disk causes an error here instead of a SIGBUS
    // later.
    int failure = 0;
    do {
      failure = ::posix_fallocate(fd, 0, static_cast<off_t>(bytes));
    } while (failure == EINTR);
    if (failure != 0)
      throw IoError("cannot allocate the cache of a remote dataset,", folder.string(), failure);
    at = ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    if (at == MAP_FAILED)
      throw IoError("cannot map the cache of a remote dataset,", folder.string(), errno);
  }
  Mapping(const Mapping&) = delete;
  Mapping& operator=(const Mapping&) = delete;
  ~Mapping() { ::munmap(at, bytes); }
  [[nodiscard]] State& head() const { return *static_cast<State*>(at); }
  [[nodiscard]] std::uint64_t& value(std::uint64_t i) const {
    return reinterpret_cast<std::uint64_t*>(static_cast<std::byte*>(at) + kValuesAt)[i];
  }

  std::uint64_t bytes;
  void* at = nullptr;
};

RemoteStore::RemoteStore(const std::filesystem::path& cache, const std::string& url,
                         const HttpVersion& version)
    : folder_(cache / folder_name(url, version)) {
  static_assert(sizeof(State) <= kValuesAt);
  create_folders(folder_);
  warn_if_on_network(folder_);
  write_version(folder_, version);
  try {
    data_fd_ = open_shared(folder_ / "data");
    if (::ftruncate(data_fd_, static_cast<off_t>(version.size)) != 0)
      throw IoError("cannot set the size of", (folder_ / "data").string(), errno);
    state_fd_ = open_shared(folder_ / "state");
    state_ = std::make_unique<Mapping>(state_fd_, kValuesAt, folder_);
    std::uint64_t& magic = state_->head().magic;
    if (read_hash(magic) == 0) write_hash(magic, kMagic);
    if (read_hash(magic) != kMagic) {
      throw IoError(
          fmt::format("{}: expected a cache of remote datasets, got other bytes. Remove "
                      "this folder",
                      folder_.string()));
    }
    file_ = std::make_unique<MappedFile>(folder_ / "data");
  } catch (...) {
    if (data_fd_ >= 0) ::close(data_fd_);
    if (state_fd_ >= 0) ::close(state_fd_);
    throw;
  }
}

std::optional<HttpVersion> RemoteStore::cached_version(const std::filesystem::path& cache,
                                                       const std::string& url) {
  std::optional<HttpVersion> known;
  std::error_code failure;
  for (const auto& entry : std::filesystem::directory_iterator(cache, failure)) {
    const std::optional<HttpVersion> version = read_version(entry.path());
    if (!version || folder_name(url, *version) != entry.path().filename()) continue;
    if (known) return std::nullopt;
    known = version;
  }
  return known;
}

RemoteStore::~RemoteStore() {
  ::close(data_fd_);
  ::close(state_fd_);
}

void RemoteStore::write(std::uint64_t offset, std::span<const std::byte> bytes) const {
  while (!bytes.empty()) {
    const std::ptrdiff_t wrote = retry_on_eintr(
        [&] { return ::pwrite(data_fd_, bytes.data(), bytes.size(), static_cast<off_t>(offset)); });
    if (wrote <= 0)
      throw IoError("cannot write to the cache of a remote dataset (data.cache_dir),",
                    folder_.string(), wrote < 0 ? errno : EIO);
    offset += static_cast<std::uint64_t>(wrote);
    bytes = bytes.subspan(static_cast<std::size_t>(wrote));
  }
  failpoint("remote.before_state");
}

void RemoteStore::resize_values(std::uint64_t values) {
  state_ = std::make_unique<Mapping>(state_fd_, kValuesAt + 8 * values, folder_);
  values_ = values;
}

std::uint64_t RemoteStore::value_hash(std::uint64_t value) const {
  require(value < values_, "the value exists");
  return read_hash(state_->value(value));
}

void RemoteStore::set_value_hash(std::uint64_t value, std::uint64_t hash) const {
  require(value < values_, "the value exists");
  write_hash(state_->value(value), hash);
}

std::uint64_t RemoteStore::range_hash(std::uint64_t begin, std::uint64_t end) const {
  const std::scoped_lock lock(table_mutex_);
  for (const State::Range& range : state_->head().ranges)
    if (const std::uint64_t hash = read_hash(range.hash);
        hash != 0 && range.begin == begin && range.end == end)
      return hash;
  return 0;
}

void RemoteStore::set_range_hash(std::uint64_t begin, std::uint64_t end, std::uint64_t hash) const {
  const std::scoped_lock threads(table_mutex_);
  const RangeLock processes(*this, kTableLock, kTableLock + 1, kTableLockLimitS,
                            [] { return false; });
  for (State::Range& range : state_->head().ranges) {
    const bool unused = read_hash(range.hash) == 0;
    if (!unused && (range.begin != begin || range.end != end)) continue;
    range.begin = begin;
    range.end = end;
    return write_hash(range.hash, hash);
  }
}

void RemoteStore::forget_ranges() const {
  const std::scoped_lock threads(table_mutex_);
  const RangeLock processes(*this, kTableLock, kTableLock + 1, kTableLockLimitS,
                            [] { return false; });
  for (State::Range& range : state_->head().ranges) write_hash(range.hash, 0);
}

RemoteStore::RangeLock::RangeLock(const RemoteStore& store, std::uint64_t begin, std::uint64_t end,
                                  double limit_s, const std::function<bool()>& stop)
    : fd_(store.data_fd_), begin_(begin), end_(end) {
  struct flock lock {};
  lock.l_type = F_WRLCK;
  lock.l_whence = SEEK_SET;
  lock.l_start = static_cast<off_t>(begin);
  lock.l_len = static_cast<off_t>(end - begin);
  const auto start = std::chrono::steady_clock::now();
  auto pause = std::chrono::milliseconds(1);
  for (;;) {
    held_ = ::fcntl(fd_, F_OFD_SETLK, &lock) == 0;
    // Any other error means that the file system does not support locks.
    if (held_ || (errno != EAGAIN && errno != EACCES && errno != EINTR)) return;
    if (std::chrono::steady_clock::now() - start > std::chrono::duration<double>(limit_s)) return;
    if (stop()) return;
    std::this_thread::sleep_for(pause);
    pause = std::min(2 * pause, std::chrono::milliseconds(50));
  }
}

RemoteStore::RangeLock::~RangeLock() {
  if (!held_) return;
  struct flock lock {};
  lock.l_type = F_UNLCK;
  lock.l_whence = SEEK_SET;
  lock.l_start = static_cast<off_t>(begin_);
  lock.l_len = static_cast<off_t>(end_ - begin_);
  ::fcntl(fd_, F_OFD_SETLK, &lock);
}

}  // namespace precast::data
