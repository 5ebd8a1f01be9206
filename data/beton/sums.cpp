#include "data/beton/sums.h"

#include <fmt/core.h>
#include <xxhash.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <fstream>
#include <new>
#include <system_error>

#include "data/beton/format.h"
#include "framework/core/error.h"

namespace precast::data {
namespace {

/// The bytes `PCSUMS01` as a little-endian number.
constexpr std::uint64_t kMagic = 0x3130534d55534350;
/// Offsets in the trailer, which consists of SumsTrailer, a number that is 0, the block's hash and
/// kMagic.
constexpr std::size_t kSpareAt = sizeof(SumsTrailer);
/// Offset of the block's hash, which covers all bytes before it.
constexpr std::size_t kBlockHashAt = kSpareAt + 8;
constexpr std::size_t kMagicAt = kBlockHashAt + 8;
static_assert(kMagicAt + 8 == kSumsTrailerBytes && sizeof(SumsTrailer) == 48);

XXH3_state_t* state_of(void* state) {
  return static_cast<XXH3_state_t*>(state);
}

/// Whether a file ends like a block of checksums. An empty file counts as a truncated block.
bool is_sums_file(const std::filesystem::path& path) {
  std::ifstream file(path, std::ios::binary | std::ios::ate);
  if (file.tellg() == 0) return true;
  std::array<char, sizeof kMagic> end{};
  file.seekg(-static_cast<std::streamoff>(end.size()), std::ios::end);
  return file.read(end.data(), end.size()) &&
         load<std::uint64_t>(reinterpret_cast<const std::byte*>(end.data())) == kMagic;
}

}  // namespace

std::filesystem::path sums_sidecar(const std::filesystem::path& file) {
  return file.string() + ".sum";
}

std::uint64_t hash_of(std::span<const std::byte> bytes) {
  return XXH3_64bits(bytes.data(), bytes.size());
}

RunningHash::RunningHash() : state_(XXH3_createState()) {
  if (state_ == nullptr) throw std::bad_alloc();
  XXH3_64bits_reset(state_of(state_));
}
RunningHash::~RunningHash() {
  XXH3_freeState(state_of(state_));
}
void RunningHash::add(std::span<const std::byte> bytes) {
  XXH3_64bits_update(state_of(state_), bytes.data(), bytes.size());
}
std::uint64_t RunningHash::value() const {
  return XXH3_64bits_digest(state_of(state_));
}

std::uint64_t sums_bytes(std::uint64_t samples, std::uint64_t value_fields,
                         std::uint64_t info_bytes) {
  return 8 * samples * value_fields + info_bytes + kSumsTrailerBytes;
}

std::vector<std::byte> encode_sums(SumsTrailer trailer, std::span<const std::uint64_t> values,
                                   std::string_view info) {
  require(values.size() == trailer.samples * trailer.value_fields, "each value has its hash");
  trailer.info_bytes = info.size();
  std::vector<std::byte> block(sums_bytes(trailer.samples, trailer.value_fields, info.size()));
  if (!values.empty()) std::memcpy(block.data(), values.data(), values.size_bytes());
  std::byte* text = block.data() + values.size_bytes();
  if (!info.empty()) std::memcpy(text, info.data(), info.size());
  std::byte* at = text + info.size();
  store(at, trailer);
  store(at + kBlockHashAt,
        hash_of(std::span(block).first(block.size() - kSumsTrailerBytes + kBlockHashAt)));
  store(at + kMagicAt, kMagic);
  return block;
}

void check_sums_sidecar(const std::filesystem::path& file) {
  const std::filesystem::path sidecar = sums_sidecar(file);
  std::error_code unknown;
  if (!std::filesystem::exists(sidecar, unknown) || is_sums_file(sidecar)) return;
  throw ConfigError(
      fmt::format("{}: expected no file, or the checksums of {}, got a different file. "
                  "Rename that file",
                  sidecar.string(), file.string()));
}

void remove_sums_sidecar(const std::filesystem::path& file, FileOps& ops) {
  const std::filesystem::path sidecar = sums_sidecar(file);
  std::error_code unknown;
  if (!std::filesystem::exists(sidecar, unknown) || !is_sums_file(sidecar)) return;
  if (ops.unlink(sidecar.c_str()) != 0 && errno != ENOENT)
    throw IoError("cannot remove the checksums of an older file,", sidecar.string(), errno);
}

std::uint64_t sums_bytes_of(std::span<const std::byte> trailer) {
  require(trailer.size() == kSumsTrailerBytes, "a trailer is given");
  if (load<std::uint64_t>(trailer.data() + kMagicAt) != kMagic) return 0;
  const auto sizes = load<SumsTrailer>(trailer.data());
  constexpr std::uint64_t kMax = std::uint64_t{1} << 56;
  std::uint64_t values = 0;
  if (__builtin_mul_overflow(sizes.samples, sizes.value_fields, &values) || values > kMax ||
      sizes.info_bytes > kMax)
    return UINT64_MAX;
  return sums_bytes(sizes.samples, sizes.value_fields, sizes.info_bytes);
}

FileSums::FileSums(std::span<const std::byte> block, std::uint64_t samples,
                   std::uint64_t value_fields, const std::string& location)
    : block_(block) {
  const bool is_complete = block.size() >= kSumsTrailerBytes &&
                           sums_bytes_of(block.last(kSumsTrailerBytes)) == block.size();
  if (!is_complete)
    throw DataError(fmt::format(
        "{}: expected intact checksums of the dataset, got damaged ones or those of another file",
        location));
  const std::size_t at = block.size() - kSumsTrailerBytes;
  trailer_ = load<SumsTrailer>(block.data() + at);
  if (load<std::uint64_t>(block.data() + at + kBlockHashAt) !=
      hash_of(block.first(at + kBlockHashAt)))
    throw DataError(fmt::format("{}: expected intact checksums, got damaged ones", location));
  if (trailer_.samples != samples || trailer_.value_fields != value_fields) {
    throw DataError(
        fmt::format("{}: expected checksums of {} samples with {} large values each, got checksums "
                    "of {} samples with {}",
                    location, samples, value_fields, trailer_.samples, trailer_.value_fields));
  }
}

std::uint64_t FileSums::value(std::uint64_t sample, std::size_t value_field) const {
  require(sample < trailer_.samples && value_field < trailer_.value_fields, "the value exists");
  return load<std::uint64_t>(block_.data() + 8 * (sample * trailer_.value_fields + value_field));
}

std::string_view FileSums::info() const {
  const std::size_t size = trailer_.info_bytes;
  if (size == 0) return {};
  const std::byte* at = block_.data() + (block_.size() - kSumsTrailerBytes - size);
  return {reinterpret_cast<const char*>(at), size};
}

}  // namespace precast::data
