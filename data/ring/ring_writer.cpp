#include "data/ring/ring_writer.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <utility>

#include "data/beton/format.h"
#include "data/ring/ring_error.h"

namespace precast::data {
namespace {

using SharedNumber = std::atomic<std::uint64_t>;

RingHeader write_ring_header(std::span<std::byte> memory, const RingHeader& header) {
  std::memcpy(memory.data(), &header, sizeof header);
  return read_ring_header(memory);
}

}  // namespace

std::uint64_t RingWriter::ids_bytes(std::uint64_t slots, std::uint64_t batch_size) {
  return slots * round_up(batch_size * sizeof(std::uint64_t), kRingAlignment);
}

RingWriter::RingWriter(std::span<std::byte> memory, const RingHeader& header,
                       std::uint64_t batch_size)
    : memory_(memory),
      header_(write_ring_header(memory, header)),
      batch_size_(batch_size),
      to_consumers_(control(kToConsumersAt)),
      to_producer_(control(kToProducerAt)),
      cells_(header.cells),
      positions_(header.slots),
      samples_(header.slots),
      owners_(header.slots) {}

std::byte* RingWriter::control(std::uint64_t offset) const {
  return memory_.data() + header_.control_offset + offset;
}

/// Frees the slots whose items all consumers have released, and counts the delivered samples.
/// Consumers can write anything to their cells, so impossible values are clamped.
void RingWriter::free_released() {
  std::uint64_t lowest = published_;
  bool any = false;
  for (std::size_t c = 0; c < cells_.size(); ++c) {
    Cell& cell = cells_[c];
    if (!cell.taken) continue;
    const auto* const shared =
        reinterpret_cast<const SharedNumber*>(control(kCellsAt + c * kCellBytes));
    const std::uint64_t released = shared->load(std::memory_order_acquire);
    for (; cell.released < std::min(released, published_); ++cell.released) {
      const std::uint64_t slot = cell.released % header_.slots;
      if (positions_[slot] >= cell.joined) delivered_ += samples_[slot];
    }
    lowest = std::min(lowest, cell.released);
    any = true;
  }
  if (!any) return;
  for (; oldest_ < lowest; ++oldest_) owners_[oldest_ % header_.slots].reset();
}

bool RingWriter::publish(const RingItem& item, std::shared_ptr<const void> owner) {
  RingPosition next;
  for (;;) {
    const std::uint32_t seen = to_producer_.value();
    {
      const std::scoped_lock lock(mutex_);
      if (stopped_) return false;
      free_released();
      next = next_;
      if (published_ - oldest_ < header_.slots) break;
    }
    to_producer_.wait(seen);
  }
  // Only this thread changes `published_`, and no consumer reads this slot now.
  if (item.position < next)
    throw RingError(fmt::format("ring: expected to publish {} or later, got {}", text_of(next),
                                text_of(item.position)));
  if (item.sample_ids.size() > batch_size_)
    throw RingError(fmt::format("ring: expected batches of at most {} samples, got {}", batch_size_,
                                item.sample_ids.size()));
  const std::uint64_t slot = published_ % header_.slots;
  write_ring_item(memory_, header_, published_, item,
                  header_.data_offset + ids_bytes(slot, batch_size_));
  {
    const std::scoped_lock lock(mutex_);
    positions_[slot] = item.position;
    samples_[slot] = item.sample_ids.size();
    owners_[slot] = std::move(owner);
    next_ = item.position;
    if (item.kind == RingKind::batch)
      ++next_.batch;
    else
      next_ = {.epoch = item.position.epoch + 1};
    ++published_;
    reinterpret_cast<SharedNumber*>(memory_.data() + kRingPublishedAt)
        ->store(published_, std::memory_order_release);
  }
  to_consumers_.raise();
  return true;
}

bool RingWriter::wait_for_consumers(std::size_t count) {
  for (;;) {
    const std::uint32_t seen = to_producer_.value();
    {
      const std::scoped_lock lock(mutex_);
      if (taken_cells() >= count) return true;
      if (stopped_) return false;
    }
    to_producer_.wait(seen);
  }
}

RingPosition RingWriter::start() {
  const std::scoped_lock lock(mutex_);
  if (published_ > 0 || taken_cells() == 0) return next_;
  bool first = true;
  for (const Cell& cell : cells_) {
    if (!cell.taken) continue;
    next_ = first ? cell.joined : std::min(next_, cell.joined);
    first = false;
  }
  return next_;
}

bool RingWriter::all_released() {
  const std::scoped_lock lock(mutex_);
  free_released();
  return taken_cells() == 0 || oldest_ == published_;
}

std::uint64_t RingWriter::samples_delivered() {
  const std::scoped_lock lock(mutex_);
  free_released();
  return delivered_;
}

/// Returns the sequence of the first item that is still in a slot, is at or after the position of
/// `join` and, for epoch_start, at the start of an epoch. If there is no such item, returns the
/// sequence of the next item to be published.
std::uint64_t RingWriter::first_item(const RingJoin& join) const {
  const bool start = join.mode == RingJoin::Mode::epoch_start;
  const auto fits = [&](const RingPosition& position) {
    return position >= join.position && (!start || position.batch == 0);
  };
  const RingPosition earliest = oldest_ < published_ ? positions_[oldest_ % header_.slots] : next_;
  if (!start && join.position < earliest)
    throw RingError(
        fmt::format("ring: expected to join at {} or later, got {}, which the ring has passed. "
                    "Start the producer again, or join at the start of an epoch",
                    text_of(earliest), text_of(join.position)),
        ExitCode::usage);
  for (std::uint64_t s = oldest_; s < published_; ++s)
    if (fits(positions_[s % header_.slots])) return s;
  return published_;
}

RingWriter::Admission RingWriter::admit(const RingJoin& join) {
  Admission admission;
  {
    const std::scoped_lock lock(mutex_);
    free_released();
    const auto cell = std::ranges::find(cells_, false, &Cell::taken);
    if (cell == cells_.end())
      throw RingError(
          fmt::format("ring: expected at most {} consumers, got one more", cells_.size()));
    admission.sequence = first_item(join);
    admission.cell = static_cast<std::uint32_t>(cell - cells_.begin());
    *cell = {.taken = true, .released = admission.sequence, .joined = join.position};
    reinterpret_cast<SharedNumber*>(control(kCellsAt + admission.cell * kCellBytes))
        ->store(admission.sequence, std::memory_order_release);
  }
  to_producer_.raise();
  return admission;
}

void RingWriter::leave(std::uint32_t cell) {
  {
    const std::scoped_lock lock(mutex_);
    free_released();
    cells_[cell].taken = false;
  }
  to_producer_.raise();
}

void RingWriter::stop() {
  {
    const std::scoped_lock lock(mutex_);
    stopped_ = true;
  }
  to_producer_.raise();
}

void RingWriter::drop_owners() {
  const std::scoped_lock lock(mutex_);
  std::ranges::fill(owners_, nullptr);
}

std::size_t RingWriter::taken_cells() const {
  return static_cast<std::size_t>(std::ranges::count(cells_, true, &Cell::taken));
}

std::size_t RingWriter::consumers() const {
  const std::scoped_lock lock(mutex_);
  return taken_cells();
}

}  // namespace precast::data
