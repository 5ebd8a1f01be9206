// Changes numbers in the header, the field descriptors, the metadata and the allocation table of a
// .beton file. Most of the roughly one kilobyte of each descriptor is zeros, so random changes of
// bytes rarely hit a number.
#include <algorithm>
#include <array>
#include <cstdint>
#include <cstring>
#include <random>
#include <span>

#include "data/beton/format.h"

extern "C" std::size_t LLVMFuzzerMutate(std::uint8_t* data, std::size_t size, std::size_t max_size);

namespace precast::fuzz {
namespace {

using namespace precast::data;

/// The position of a number: in the header, a descriptor, the metadata or the table.
std::size_t pick_offset(std::span<const std::uint8_t> file, const BetonHeader& header,
                        std::minstd_rand& random) {
  const std::size_t fields = std::max<std::size_t>(header.num_fields % 16U, 1);
  const std::size_t metadata = kHeaderBytes + fields * kFieldBytes;
  switch (random() % 8) {
    case 0: {
      constexpr std::array<std::size_t, 5> kHeaderOffsets = {0, 2, 4, 8, 16};
      return kHeaderOffsets[random() % kHeaderOffsets.size()];
    }
    case 1: {  // type, name, first dimensions, dtype
      constexpr std::array<std::size_t, 7> kDescriptorOffsets = {
          0, 1, 4, 17, 25, 17 + kDtypeLengthAt, 17 + kDtypeTextAt};
      return kHeaderBytes + random() % fields * kFieldBytes +
             kDescriptorOffsets[random() % kDescriptorOffsets.size()];
    }
    case 2:
    case 3:
    case 4: {
      const std::size_t table = std::min<std::size_t>(header.table_offset, file.size());
      if (table > metadata && table < file.size()) {
        return table + random() % ((file.size() - table + 7) / 8) * 8;
      }
      [[fallthrough]];
    }
    default:
      return metadata + random() % 256;
  }
}

std::uint64_t pick_number(std::span<const std::uint8_t> file, std::uint64_t old,
                          std::minstd_rand& random) {
  constexpr std::array<std::uint64_t, 10> kNumbers = {
      0,         1, 2, 0xFFFF, UINT32_MAX, kMinPageBytes, kMaxPageBytes, INT64_MAX, UINT64_MAX - 7,
      UINT64_MAX};
  switch (random() % 5) {
    case 0:
      return kNumbers[random() % kNumbers.size()];
    case 1:
      return file.size() - std::min<std::size_t>(file.size(), random() % 64);
    case 2: {
      std::uint64_t other = 0;
      std::memcpy(&other, file.data() + random() % (file.size() - 8), sizeof other);
      return other;
    }
    case 3:
      return old ^ (std::uint64_t{1} << (random() % 64));
    default:
      return old + random() % 17 - 8;
  }
}

void change(std::span<std::uint8_t> file, std::minstd_rand& random) {
  BetonHeader header;
  header.num_fields = load<std::uint16_t>(std::as_bytes(file).data() + 2);
  header.table_offset = load<std::uint64_t>(std::as_bytes(file).data() + 16);
  for (unsigned changes = 1 + random() % 3; changes > 0; --changes) {
    const std::size_t offset = std::min(pick_offset(file, header, random), file.size() - 8);
    constexpr std::array<std::size_t, 4> kSizes = {1, 2, 4, 8};
    std::uint64_t number = 0;
    std::memcpy(&number, file.data() + offset, sizeof number);
    number = pick_number(file, number, random);
    std::memcpy(file.data() + offset, &number, kSizes[random() % kSizes.size()]);
  }
}

}  // namespace
}  // namespace precast::fuzz

extern "C" std::size_t LLVMFuzzerCustomMutator(std::uint8_t* data, std::size_t size,
                                               std::size_t max_size, unsigned seed) {
  std::minstd_rand random(seed);
  random.discard(1);
  if (size < precast::data::kHeaderBytes || random() % 4 == 0) {
    return LLVMFuzzerMutate(data, size, max_size);
  }
  precast::fuzz::change({data, size}, random);
  return size;
}
