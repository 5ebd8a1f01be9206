// Changes the entries of a zip archive and packs them again with correct checksums and positions,
// since random changes of bytes rarely pass the checksum.
#include <algorithm>
#include <cstdint>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "framework/core/archive/zip_file.h"
#include "framework/core/error.h"
#include "tests/fuzz/memory_file.h"

extern "C" std::size_t LLVMFuzzerMutate(std::uint8_t* data, std::size_t size, std::size_t max_size);

namespace precast::fuzz {
namespace {

using Entries = std::vector<std::pair<std::string, std::vector<std::uint8_t>>>;

Entries unpack(std::span<const std::byte> file) {
  const ZipReader zip(file, "input");
  Entries entries;
  for (const std::string& name : zip.names()) {
    const auto bytes = zip.read(name);
    const auto* first = reinterpret_cast<const std::uint8_t*>(bytes.data());
    entries.emplace_back(name, std::vector<std::uint8_t>(first, first + bytes.size()));
  }
  return entries;
}

std::vector<std::byte> pack(const Entries& entries) {
  MemoryFile file;
  ZipWriter zip(MemoryFile::kPath, file);
  for (const auto& [name, bytes] : entries) zip.add(name, std::as_bytes(std::span(bytes)));
  zip.finish();
  return file.bytes();
}

void change(Entries& entries, std::minstd_rand& random, std::size_t max_size) {
  const auto pick = [&] {
    return entries.begin() + static_cast<std::ptrdiff_t>(random() % entries.size());
  };
  const auto pickle = std::ranges::find_if(
      entries, [](const auto& entry) { return entry.first.ends_with("data.pkl"); });
  const unsigned choice = random() % 16;
  if (choice == 0) {
    entries.erase(pick());
  } else if (choice == 1) {
    auto copy = *pick();
    copy.first += static_cast<char>('0' + random() % 10);
    entries.push_back(std::move(copy));
  } else if (choice == 2) {
    std::swap(pick()->second, pick()->second);
  } else {
    auto& bytes = (choice < 12 && pickle != entries.end() ? pickle : pick())->second;
    const std::size_t size = bytes.size();
    bytes.resize(std::max<std::size_t>(size + 64, 1));
    bytes.resize(LLVMFuzzerMutate(bytes.data(), size, std::min(bytes.size(), max_size)));
  }
}

}  // namespace
}  // namespace precast::fuzz

extern "C" std::size_t LLVMFuzzerCustomMutator(std::uint8_t* data, std::size_t size,
                                               std::size_t max_size, unsigned seed) {
  using namespace precast::fuzz;
  std::minstd_rand random(seed);
  random.discard(1);
  if (random() % 4 != 0) {
    try {
      Entries entries = unpack(std::as_bytes(std::span(data, size)));
      if (!entries.empty()) {
        change(entries, random, max_size);
        const std::vector<std::byte> packed = pack(entries);
        if (packed.size() <= max_size) {
          std::ranges::transform(packed, data,
                                 [](std::byte b) { return std::to_integer<std::uint8_t>(b); });
          return packed.size();
        }
      }
    } catch (const precast::Error&) {
      // The input is no longer an archive, so only its bytes can be changed.
    }
  }
  return LLVMFuzzerMutate(data, size, max_size);
}
