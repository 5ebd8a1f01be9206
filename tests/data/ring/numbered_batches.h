#pragma once

#include <algorithm>
#include <cstdint>
#include <memory>
#include <utility>

#include "data/ring/producer.h"

namespace precast::test {

/// Creates batches in the memory of a ring. All bytes of a batch have the same value, which depends
/// on its position.
class NumberedBatches {
 public:
  static constexpr std::int64_t kSamples = 8;
  static constexpr std::size_t kSampleBytes = 512;
  static constexpr std::size_t kBatchBytes = kSamples * kSampleBytes;

  [[nodiscard]] static data::RingOptions options(const std::string& name, int slots = 3) {
    return {.name = name,
            .slots = slots,
            .batch_size = kSamples,
            .batch_bytes = kBatchBytes,
            .buffers = slots + 1};
  }

  /// The value of every byte of a batch.
  [[nodiscard]] static std::byte value(std::int64_t epoch, std::int64_t number) {
    return static_cast<std::byte>((epoch * 31 + number * 7) % 199);
  }

  explicit NumberedBatches(const data::RingProducer& ring) : allocator_(ring.allocator()) {}

  [[nodiscard]] data::HostBatch make(std::int64_t epoch, std::int64_t number) const {
    std::byte* const at = allocator_.allocate(kBatchBytes);
    std::fill_n(at, kBatchBytes, value(epoch, number));
    data::HostBatch batch;
    batch.fields = {{.name = "image",
                     .type = data::ElementType::u8,
                     .shape = {kSamples, static_cast<std::int64_t>(kSampleBytes)},
                     .data = at}};
    batch.sample_ids.assign(kSamples, static_cast<std::uint64_t>(number));
    batch.memory =
        std::shared_ptr<const void>(at, [release = allocator_.release, at](auto*) { release(at); });
    return batch;
  }

  [[nodiscard]] static bool is_correct(const data::HostBatch& batch, std::int64_t epoch,
                                       std::int64_t number) {
    const auto right = [&](std::byte byte) { return byte == value(epoch, number); };
    return batch.fields.size() == 1 && batch.fields[0].name == "image" &&
           batch.fields[0].bytes() == kBatchBytes &&
           std::ranges::all_of(batch.fields[0].values<std::byte>(), right) &&
           batch.sample_ids.size() == kSamples &&
           batch.sample_ids[0] == static_cast<std::uint64_t>(number);
  }

 private:
  data::BufferAllocator allocator_;
};

}  // namespace precast::test
