#include "data/ring/producer.h"

#include <fmt/format.h>

#include <algorithm>
#include <mutex>
#include <span>
#include <utility>
#include <vector>

#include "data/beton/format.h"
#include "data/ring/producer_service.h"
#include "data/ring/ring_writer.h"
#include "data/ring/segment.h"

namespace precast::data {
namespace {

constexpr std::size_t kMaxRingBytes = std::size_t{1} << 50;

/// Returns the header of a ring whose data consists of the ids, followed by all buffers.
RingHeader make_ring_header(const RingOptions& options) {
  if (options.slots < 1 || options.slots > static_cast<int>(kMaxRingSlots) ||
      options.batch_size < 1 || options.buffers < 1 || options.batch_bytes < 1)
    throw ConfigError(fmt::format(
        "ring: expected 1 to {} slots, and batch_size, batch_bytes and "
        "buffers of at least 1, got {}, {}, {} and {}",
        kMaxRingSlots, options.slots, options.batch_size, options.batch_bytes, options.buffers));
  const auto slots = static_cast<std::uint32_t>(options.slots);
  const auto samples = static_cast<std::uint64_t>(options.batch_size);
  const auto buffers = static_cast<std::uint64_t>(options.buffers);
  if (samples > kMaxRingDimensionSize)
    throw ConfigError(fmt::format("ring: expected a batch_size of at most {}, got {}",
                                  kMaxRingDimensionSize, samples));
  if (options.batch_bytes > kMaxRingBytes / buffers)
    throw ConfigError(
        fmt::format("ring: expected buffers of at most {} bytes in total, got {} x {}",
                    kMaxRingBytes, buffers, options.batch_bytes));
  const std::uint64_t description_bytes = options.description.size();
  if (description_bytes > kMaxRingDescriptionBytes)
    throw ConfigError(fmt::format("ring: expected a description of at most {} bytes, got {}",
                                  kMaxRingDescriptionBytes, description_bytes));
  RingHeader header{.slots = slots, .cells = kMaxRingConsumers};
  header.description_offset = kRingHeaderBytes;
  header.description_bytes = description_bytes;
  header.control_offset = round_up(kRingHeaderBytes + description_bytes, kRingPageBytes);
  header.slots_offset = header.control_offset + round_up(header.control_bytes(), kRingPageBytes);
  header.slot_bytes = sizeof(RingSlot) + kMaxRingOutputs * sizeof(RingOutput);
  header.data_offset = round_up(header.slots_offset + slots * header.slot_bytes, kRingPageBytes);
  header.data_bytes = RingWriter::ids_bytes(slots, samples) +
                      buffers * round_up(options.batch_bytes, kRingAlignment);
  header.segment_bytes = round_up(header.data_offset + header.data_bytes, kRingPageBytes);
  return header;
}

}  // namespace

/// The producer and its allocators share this object.
struct RingProducer::Memory {
  Memory(const RingOptions& options, const RingHeader& header)
      : segment(header.segment_bytes, options.name),
        writer(segment.memory(), header, static_cast<std::uint64_t>(options.batch_size)),
        batch_bytes(options.batch_bytes) {
    std::ranges::copy(
        std::as_bytes(std::span(options.description)),
        segment.memory().begin() + static_cast<std::ptrdiff_t>(header.description_offset));
    std::byte* at =
        segment.memory().data() + header.data_offset +
        RingWriter::ids_bytes(header.slots, static_cast<std::uint64_t>(options.batch_size));
    for (int i = 0; i < options.buffers; ++i, at += round_up(batch_bytes, kRingAlignment))
      free.push_back(at);
  }

  std::byte* allocate(std::size_t bytes) {
    const std::scoped_lock lock(mutex);
    require(bytes <= batch_bytes, "a batch fits into a buffer of the ring");
    require(!free.empty(), "the ring has a buffer for each batch that is in use at the same time");
    std::byte* const buffer = free.back();
    free.pop_back();
    return buffer;
  }
  void release(std::byte* buffer) {
    const std::scoped_lock lock(mutex);
    free.push_back(buffer);
  }

  RingSegment segment;
  RingWriter writer;
  const std::size_t batch_bytes;
  std::mutex mutex;
  std::vector<std::byte*> free;
};

RingProducer::RingProducer(const RingOptions& options) {
  // Listen first: if the name is in use, this fails before memory is allocated.
  OwnedDescriptor listening =
      options.name.empty() ? OwnedDescriptor() : listen_for_consumers(options.name);
  memory_ = std::make_shared<Memory>(options, make_ring_header(options));
  service_ = std::make_unique<Service>(memory_->writer, memory_->segment.descriptor(),
                                       std::move(listening));
}

RingProducer::~RingProducer() {
  service_.reset();
  memory_->writer.drop_owners();
}

BufferAllocator RingProducer::allocator() const {
  return {[memory = memory_](std::size_t bytes) { return memory->allocate(bytes); },
          [memory = memory_](std::byte* buffer) { memory->release(buffer); }};
}

bool RingProducer::publish(std::int64_t epoch, std::int64_t number, const HostBatch& batch) {
  return memory_->writer.publish({.kind = RingKind::batch,
                                  .position = {.epoch = epoch, .batch = number},
                                  .fields = batch.fields,
                                  .sample_ids = batch.sample_ids},
                                 batch.memory);
}

bool RingProducer::end_pass(std::int64_t epoch, std::int64_t batches) {
  return memory_->writer.publish(
      {.kind = RingKind::end_of_pass, .position = {.epoch = epoch, .batch = batches}}, nullptr);
}

bool RingProducer::wait_for_consumers(int count) {
  return memory_->writer.wait_for_consumers(static_cast<std::size_t>(std::max(count, 0)));
}

RingPosition RingProducer::start() {
  return memory_->writer.start();
}

void RingProducer::finish() {
  service_->end({.exit_code = ExitCode::done});
}

void RingProducer::fail(const Error& error) {
  service_->end({.exit_code = error.exit_code(), .text = error.what()});
}

void RingProducer::interrupt() {
  memory_->writer.stop();
}

int RingProducer::consumers() const {
  return static_cast<int>(memory_->writer.consumers());
}

bool RingProducer::all_released() {
  return memory_->writer.all_released();
}

std::uint64_t RingProducer::samples_delivered() {
  return memory_->writer.samples_delivered();
}

int RingProducer::connect() {
  auto [ours, theirs] = connected_pair();
  service_->add(std::move(ours));
  return theirs.release();
}

}  // namespace precast::data
