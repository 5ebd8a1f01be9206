#include "data/decode/jpeg_sidecar.h"

#include <algorithm>
#include <vector>

#include "data/beton/format.h"
#include "framework/core/error.h"
#include "tests/fuzz/memory_file.h"
#include "tests/fuzz/targets.h"

namespace precast::fuzz {
namespace {

using namespace precast::data;

constexpr char kFingerprint[] = "3031323334353637";
/// Positions and sizes from FORMAT.md. @{
constexpr std::size_t kHashAt = 8, kHashedFrom = 16, kFingerprintAt = 16, kSamplesAt = 32,
                      kTableAt = 40, kHeaderBytes = 48, kEntryBytes = 16;
/// @}
/// Enough samples for several blocks.
constexpr std::uint64_t kMaxSamples = 300;

/// Memory that begins at a multiple of 8 bytes, as a mapped file does.
using Words = std::vector<std::uint64_t>;

std::span<std::byte> bytes_of(Words& words, std::size_t size) {
  return std::as_writable_bytes(std::span(words)).first(size);
}

/// Reads all samples, so that sanitizers detect reads outside the bytes.
void read_all(Input bytes, std::uint64_t samples) {
  const JpegSidecar sidecar(bytes, kFingerprint, samples);
  for (std::uint64_t sample = 0; sample < samples; ++sample) {
    const JpegCheckpoints found = sidecar.find(sample);
    touch(std::as_bytes(found.points));
    require(std::ranges::equal(sidecar.find(sample).points, found.points),
            "a sample has the same checkpoints each time");
    require(found.empty() || found.interval == sidecar.interval(),
            "all checkpoints have the file's interval");
  }
  reached(sidecar.damaged() ? "damaged block" : "intact blocks");
}

/// Recomputes the hashes, as far as the positions in the file are valid.
void correct_hashes(std::span<std::byte> bytes) {
  const auto table_at = load<std::uint64_t>(bytes.data() + kTableAt);
  if (table_at > bytes.size()) return;
  std::uint64_t begin = kHeaderBytes;
  for (std::uint64_t at = table_at; bytes.size() - at >= kEntryBytes; at += kEntryBytes) {
    const auto end = load<std::uint64_t>(bytes.data() + at);
    if (end < begin || end > bytes.size()) break;
    store(bytes.data() + at + 8, hash_of(bytes.subspan(begin, end - begin)));
    begin = end;
  }
  RunningHash hash;
  hash.add(bytes.subspan(kHashedFrom, kHeaderBytes - kHashedFrom));
  hash.add(bytes.subspan(table_at));
  store(bytes.data() + kHashAt, hash.value());
}

/// Writes the input as checkpoints, and checks that they are read back unchanged.
void round_trip(Input input) {
  Words numbers(input.size() / sizeof(std::uint64_t));
  std::ranges::copy(std::as_bytes(std::span(input)).first(numbers.size() * sizeof(std::uint64_t)),
                    std::as_writable_bytes(std::span(numbers)).begin());
  std::vector<std::span<const std::uint64_t>> samples;
  for (std::size_t at = 0; at < numbers.size(); at += 1 + samples.back().size())
    samples.push_back(
        std::span(numbers).subspan(at).first(std::min(numbers[at] % 9, numbers.size() - at - 1)));
  MemoryFile memory;
  JpegSidecarWriter writer(MemoryFile::kPath, 1 + input.size() % 16, memory);
  for (const auto points : samples) writer.add(points);
  writer.complete(kFingerprint);
  writer.commit();
  Words file(memory.bytes().size() / sizeof(std::uint64_t));
  std::ranges::copy(memory.bytes(), std::as_writable_bytes(std::span(file)).begin());
  const JpegSidecar sidecar(std::as_bytes(std::span(file)), kFingerprint, samples.size());
  for (std::size_t i = 0; i < samples.size(); ++i)
    require(std::ranges::equal(sidecar.find(i).points, samples[i]),
            "checkpoints survive a round trip");
  require(!sidecar.damaged(), "a written file is intact");
}

}  // namespace

void jpeg_sidecar(Input input) {
  round_trip(input);
  if (input.size() < kHeaderBytes) return;
  Words words((input.size() + sizeof(std::uint64_t) - 1) / sizeof(std::uint64_t));
  const std::span<std::byte> bytes = bytes_of(words, input.size());
  std::ranges::copy(input, bytes.begin());
  store(bytes.data() + kFingerprintAt, std::uint64_t{0x3031323334353637});
  const auto samples = load<std::uint64_t>(bytes.data() + kSamplesAt) % kMaxSamples;
  store(bytes.data() + kSamplesAt, samples);
  const std::vector<std::byte> as_given(bytes.begin(), bytes.end());
  correct_hashes(bytes);
  run([&](Input corrected) { read_all(corrected, samples); }, bytes);
  std::ranges::copy(as_given, bytes.begin());
  read_all(bytes, samples);
}

}  // namespace precast::fuzz
