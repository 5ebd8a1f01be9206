#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <random>
#include <vector>

#include "data/loader/host_batch.h"
#include "framework/api/epoch_request.h"
#include "framework/core/error.h"
#include "tests/data/queued_device.h"

namespace precast::test {

inline constexpr std::int64_t kBatches = 9;
inline constexpr std::int64_t kBatchSize = 3;

/// Host memory that is overwritten as soon as it is released, and then reused.
class HostMemory {
 public:
  static constexpr std::size_t kBufferBytes = 256;

  std::shared_ptr<std::byte> take() {
    if (idle_.empty()) {
      buffers_.emplace_back(kBufferBytes);
      idle_.push_back(&buffers_.back());
    }
    std::vector<std::byte>* buffer = idle_.back();
    idle_.pop_back();
    return {buffer->data(), [this, buffer](std::byte*) {
              std::ranges::fill(*buffer, kPoison);
              idle_.push_back(buffer);
            }};
  }
  [[nodiscard]] std::size_t buffers() const { return buffers_.size(); }

 private:
  std::deque<std::vector<std::byte>> buffers_;
  std::vector<std::vector<std::byte>*> idle_;
};

/// Byte `index` of a field of a sample.
inline std::byte value_of(std::uint64_t sample, std::size_t field, std::size_t index) {
  return static_cast<std::byte>((sample * 131 + field * 61 + index * 7) % 199);
}

/// A source of passes with kBatches batches of two uint8 fields: image [N, image_size_px,
/// image_size_px] (at most 9 px) and label [N]. The sample ids of a pass start at epoch * 1000.
/// next() throws a DataError instead of returning batch `bad`.
class NumberedSource {
 public:
  NumberedSource(HostMemory& memory, std::int64_t bad, unsigned seed)
      : memory_(&memory), bad_(bad), random_(seed) {}

  void begin_epoch(const EpochRequest& request) {
    request_ = request;
    produced_ = 0;
  }
  std::optional<data::HostBatch> next() {
    if (produced_ == kBatches) return std::nullopt;
    if (produced_ == bad_) throw DataError("damaged");
    data::HostBatch batch;
    const std::int64_t first = request_.epoch * 1000 + produced_ * kBatchSize;
    for (std::int64_t i = 0; i < kBatchSize; ++i)
      batch.sample_ids.push_back(static_cast<std::uint64_t>(first + i));
    const auto side = static_cast<std::size_t>(request_.image_size_px);
    const std::size_t image_bytes = side * side;
    const auto memory = memory_->take();
    batch.fields = {
        {.name = "image",
         .shape = {kBatchSize, request_.image_size_px, request_.image_size_px},
         .data = memory.get()},
        {.name = "label", .shape = {kBatchSize}, .data = memory.get() + kBatchSize * image_bytes}};
    for (std::size_t f = 0; f < 2; ++f) {
      const std::size_t row = f == 0 ? image_bytes : 1;
      for (std::size_t i = 0; i < kBatchSize * row; ++i)
        batch.fields[f].data[i] = value_of(batch.sample_ids[i / row], f, i % row);
    }
    batch.memory = memory;
    ++produced_;
    return batch;
  }
  [[nodiscard]] bool ready() { return random_() % 4 != 0; }

 private:
  HostMemory* memory_;
  std::int64_t bad_;
  std::mt19937 random_;
  EpochRequest request_;
  std::int64_t produced_ = kBatches;
};

}  // namespace precast::test
