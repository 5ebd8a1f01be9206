#include "data/ring/ring_reader.h"

#include <fmt/format.h>

#include <utility>

#include "data/ring/ring_error.h"

namespace precast::data {
namespace {

/// Returns the word in which the consumer with this cell records what it has released. @throws
/// RingError if the ring has no such cell.
std::atomic<std::uint64_t>* cell_at(std::byte* control, const RingHeader& header,
                                    std::uint32_t cell) {
  if (cell >= header.cells)
    throw RingError(fmt::format("ring: expected a cell below {}, got {}", header.cells, cell));
  return reinterpret_cast<std::atomic<std::uint64_t>*>(control + kCellsAt + cell * kCellBytes);
}

/// @return the number of published items from `next` on. @throws RingError if `published` is
/// impossible.
std::uint64_t items_ahead(std::span<const std::byte> memory, const RingHeader& header,
                          std::uint64_t next) {
  const auto* const shared =
      reinterpret_cast<const std::atomic<std::uint64_t>*>(memory.data() + kRingPublishedAt);
  const std::uint64_t published = shared->load(std::memory_order_acquire);
  // If `published` is below `next`, the difference wraps around and is too large as well.
  if (published - next > header.slots)
    throw RingError(fmt::format(
        "ring: expected {} to {} published items, got {}. The producer has a different version or "
        "a bug, or the memory is damaged",
        next, next + header.slots, published));
  return published - next;
}

}  // namespace

RingReader::RingReader(std::span<const std::byte> memory, const RingHeader& header,
                       std::byte* control, std::uint32_t cell, std::uint64_t sequence)
    : memory_(memory),
      header_(header),
      to_consumers_(control + kToConsumersAt),
      to_producer_(control + kToProducerAt),
      released_(cell_at(control, header, cell)),
      next_(sequence) {
  static_cast<void>(items_ahead(memory_, header_, next_));
}

std::optional<RingReader::Taken> RingReader::take() {
  for (;;) {
    const std::uint32_t seen = to_consumers_.value();
    // Load this before counting the items, so that all items published before the end are returned.
    const bool ended = ended_.load(std::memory_order_acquire);
    if (interrupted_.load(std::memory_order_acquire)) return std::nullopt;
    if (items_ahead(memory_, header_, next_) > 0) break;
    if (ended) return std::nullopt;
    to_consumers_.wait(seen);
  }
  Taken taken{.sequence = next_, .item = read_ring_item(memory_, header_, next_)};
  const std::scoped_lock lock(mutex_);
  held_.insert(next_++);
  return taken;
}

bool RingReader::wait_for(std::chrono::nanoseconds limit) {
  const auto until = std::chrono::steady_clock::now() + limit;
  for (;;) {
    const std::uint32_t seen = to_consumers_.value();
    if (ended_ || interrupted_ || items_ahead(memory_, header_, next_) > 0) return true;
    const auto left = until - std::chrono::steady_clock::now();
    if (left.count() <= 0) return false;
    to_consumers_.wait_for(seen, left);
  }
}

void RingReader::release(std::uint64_t sequence) {
  {
    const std::scoped_lock lock(mutex_);
    held_.erase(sequence);
    released_->store(held_.empty() ? next_ : *held_.begin(), std::memory_order_release);
  }
  to_producer_.raise();
}

void RingReader::end() {
  ended_.store(true, std::memory_order_release);
  to_consumers_.raise();
}

void RingReader::interrupt() {
  interrupted_.store(true, std::memory_order_release);
  to_consumers_.raise();
}

}  // namespace precast::data
