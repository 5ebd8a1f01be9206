#include "data/cache/page_cache.h"

#include <fmt/core.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <exception>
#include <list>
#include <mutex>
#include <new>
#include <system_error>
#include <thread>
#include <unordered_map>
#include <utility>
#include <vector>

#include "data/beton/format.h"
#include "framework/core/error.h"

namespace precast::data {
namespace {

constexpr std::align_val_t kAlignment{DiskFile::kDirectAlignment};
/// Number of reads ahead of the current one for which a plan leaves room.
constexpr std::uint64_t kReadsAhead = 8;

/// Memory for one read, aligned for O_DIRECT.
class Buffer {
 public:
  Buffer() = default;
  explicit Buffer(std::uint64_t capacity)
      : memory_(static_cast<std::byte*>(::operator new(capacity, kAlignment))),
        capacity_(capacity) {}

  [[nodiscard]] std::byte* data() const { return memory_.get(); }
  [[nodiscard]] std::uint64_t capacity() const { return capacity_; }

 private:
  struct Release {
    void operator()(std::byte* memory) const { ::operator delete(memory, kAlignment); }
  };
  std::unique_ptr<std::byte, Release> memory_;
  std::uint64_t capacity_ = 0;
};

struct Idle {
  /// The part of the file that the buffer contains; empty after a failed read.
  FileRange content;
  Buffer buffer;
};

enum Stage : std::uint32_t { kPending, kLoaded, kFailed, kInterrupted };

/// The state of an extent.
struct Slot {
  std::atomic<std::uint32_t> stage{kPending};
  std::atomic<std::uint32_t> uses_left{0};
  Buffer buffer;
  std::exception_ptr failure;
};

}  // namespace

class PageCache::State {
 public:
  State(DiskFiles files, PageCacheOptions options) : files_(std::move(files)), options_(options) {}
  ~State() { end(); }

  const PageCacheOptions& options() const { return options_; }

  void begin(ExtentPlan plan) {
    end();
    if (plan.max_live_bytes > options_.budget_bytes) {
      constexpr std::uint64_t kUnit = std::uint64_t{1} << 20;
      throw ConfigError(
          fmt::format("data.cache_mb: expected at least {} MiB for {}, because of the size of its "
                      "pages (or samples), got {} MiB",
                      round_up(plan.max_live_bytes, kUnit) / kUnit, files_.path().string(),
                      options_.budget_bytes / kUnit));
    }
    plan_ = std::move(plan);
    slots_ = std::vector<Slot>(plan_.extents.size());
    for (std::size_t e = 0; e < slots_.size(); ++e) slots_[e].uses_left = plan_.extents[e].uses;
    next_ = 0;
    stopping_ = false;
    try {
      for (int r = 0; r < options_.readers; ++r) readers_.emplace_back([this] { read_ahead(); });
    } catch (const std::system_error& error) {
      const std::size_t started = readers_.size();
      end();
      throw DeviceError(fmt::format(
          "loader: cannot start reader {} of {}: {}. Use fewer workers, or allow more processes "
          "(ulimit -u)",
          started + 1, options_.readers, error.code().message()));
    }
  }

  void interrupt() {
    {
      const std::scoped_lock lock(mutex_);
      stopping_ = true;
    }
    memory_freed_.notify_all();
    for (Slot& slot : slots_) {
      std::uint32_t pending = kPending;
      if (slot.stage.compare_exchange_strong(pending, kInterrupted)) slot.stage.notify_all();
    }
  }

  void end() {
    interrupt();
    readers_.clear();
    const std::scoped_lock lock(mutex_);
    for (std::size_t e = 0; e < slots_.size(); ++e) {
      if (slots_[e].buffer.data() != nullptr) retire(e);
    }
    slots_.clear();
    plan_ = {};
  }

  FileWindow wait(std::size_t index) {
    const std::uint32_t e = plan_.extent_of[index];
    if (e == ExtentPlan::kNone) return {};
    Slot& slot = slots_[e];
    std::uint32_t stage = slot.stage.load(std::memory_order_acquire);
    if (stage == kPending) {
      const auto start = std::chrono::steady_clock::now();
      slot.stage.wait(kPending);
      ++waits_;
      waited_ns_ += (std::chrono::steady_clock::now() - start) / std::chrono::nanoseconds(1);
      stage = slot.stage.load(std::memory_order_acquire);
    }
    if (stage == kFailed) std::rethrow_exception(slot.failure);
    if (stage == kInterrupted) return {};
    const FileRange range = read_range(plan_.extents[e]);
    return {range.begin, {slot.buffer.data(), range.end - range.begin}};
  }

  void release(std::size_t index) {
    const std::uint32_t e = plan_.extent_of[index];
    if (e == ExtentPlan::kNone || slots_[e].stage != kLoaded) return;
    if (slots_[e].uses_left.fetch_sub(1) != 1) return;
    {
      const std::scoped_lock lock(mutex_);
      retire(e);
    }
    memory_freed_.notify_all();
  }

  std::uint64_t bytes_read() const { return bytes_read_; }
  std::uint64_t waits() const { return waits_; }
  double seconds_waited() const { return 1e-9 * static_cast<double>(waited_ns_); }
  std::uint64_t peak_bytes() const {
    const std::scoped_lock lock(mutex_);
    return peak_bytes_;
  }

 private:
  /// The range that is read for an extent: the extent's range, extended to the required alignment.
  [[nodiscard]] FileRange read_range(const Extent& extent) const {
    const std::uint64_t unit = files_.alignment();
    return {extent.range.begin / unit * unit, round_up(extent.range.end, unit)};
  }
  /// Runs in each reader thread.
  void read_ahead() {
    for (;;) {
      std::size_t e = 0;
      bool is_cached = false;
      {
        std::unique_lock lock(mutex_);
        memory_freed_.wait(lock, [&] {
          return stopping_ || next_ >= slots_.size() ||
                 busy_bytes_ + buffer_bytes(plan_.extents[next_].range) <= options_.budget_bytes;
        });
        if (stopping_ || next_ >= slots_.size()) return;
        e = next_++;
        try {
          is_cached = take_buffer(e);
        } catch (...) {  // out of memory
          slots_[e].failure = std::current_exception();
        }
      }
      fill(e, is_cached);
    }
  }

  void fill(std::size_t e, bool is_cached) {
    const FileRange range = read_range(plan_.extents[e]);
    Stage stage = kLoaded;
    try {
      if (slots_[e].failure) std::rethrow_exception(slots_[e].failure);
      if (!is_cached) {
        files_.read(range.begin, {slots_[e].buffer.data(), range.end - range.begin});
        bytes_read_ += range.end - range.begin;
      }
    } catch (...) {
      slots_[e].failure = std::current_exception();
      stage = kFailed;
      discard_buffer(e);
    }
    slots_[e].stage.store(stage, std::memory_order_release);
    slots_[e].stage.notify_all();
  }

  /// Frees the memory of an extent that could not be read, so that the other reads can use it.
  void discard_buffer(std::size_t e) {
    {
      const std::scoped_lock lock(mutex_);
      if (slots_[e].buffer.capacity() > 0) retire(e);
    }
    memory_freed_.notify_all();
  }

  /// Assigns memory to the extent, freeing idle memory if needed. @return whether the memory
  /// already contains the extent's bytes.
  bool take_buffer(std::size_t e) {
    const FileRange range = read_range(plan_.extents[e]);
    const std::uint64_t capacity = buffer_bytes(plan_.extents[e].range);
    const auto same = by_begin_.find(range.begin);
    if (same != by_begin_.end() && same->second->content.end == range.end) {
      adopt(e, same->second);
      return true;
    }
    // Allocate new memory while there is room, because the next epoch may need the idle bytes
    // again.
    if (busy_bytes_ + idle_bytes_ + capacity > options_.budget_bytes) {
      const auto fits = std::ranges::find_if(
          idle_, [&](const Idle& idle) { return idle.buffer.capacity() == capacity; });
      if (fits != idle_.end()) {
        adopt(e, fits);
        return false;
      }
    }
    while (busy_bytes_ + idle_bytes_ + capacity > options_.budget_bytes && !idle_.empty())
      static_cast<void>(remove(idle_.begin()));
    slots_[e].buffer = Buffer(capacity);
    count_busy(capacity);
    return false;
  }

  using IdleAt = std::list<Idle>::iterator;

  void adopt(std::size_t e, IdleAt idle) {
    slots_[e].buffer = remove(idle);
    count_busy(slots_[e].buffer.capacity());
  }

  Buffer remove(IdleAt idle) {
    Buffer buffer = std::move(idle->buffer);
    idle_bytes_ -= buffer.capacity();
    const auto named = by_begin_.find(idle->content.begin);
    if (named != by_begin_.end() && named->second == idle) by_begin_.erase(named);
    idle_.erase(idle);
    return buffer;
  }

  void count_busy(std::uint64_t bytes) {
    busy_bytes_ += bytes;
    peak_bytes_ = std::max(peak_bytes_, busy_bytes_ + idle_bytes_);
  }

  /// Makes the extent's memory idle, as the most recently used idle memory.
  void retire(std::size_t e) {
    Slot& slot = slots_[e];
    const std::uint64_t capacity = slot.buffer.capacity();
    const FileRange content = slot.stage == kLoaded ? read_range(plan_.extents[e]) : FileRange{};
    idle_.push_back({content, std::move(slot.buffer)});
    slot.buffer = {};
    if (slot.stage == kLoaded) by_begin_.insert_or_assign(content.begin, std::prev(idle_.end()));
    busy_bytes_ -= capacity;
    idle_bytes_ += capacity;
  }

  const DiskFiles files_;
  const PageCacheOptions options_;
  ExtentPlan plan_;
  std::vector<Slot> slots_;
  std::atomic<std::uint64_t> bytes_read_{0};
  std::atomic<std::uint64_t> waits_{0};
  std::atomic<std::int64_t> waited_ns_{0};
  std::atomic<bool> stopping_{true};

  /// Guards the members below, except readers_.
  mutable std::mutex mutex_;
  std::condition_variable memory_freed_;
  /// The extent to read next.
  std::size_t next_ = 0;
  std::uint64_t busy_bytes_ = 0;
  std::uint64_t idle_bytes_ = 0;
  std::uint64_t peak_bytes_ = 0;
  /// Least recently used first.
  std::list<Idle> idle_;
  std::unordered_map<std::uint64_t, IdleAt> by_begin_;
  std::vector<std::jthread> readers_;
};

PageCache::PageCache(DiskFiles files, PageCacheOptions options)
    : state_(std::make_unique<State>(std::move(files), options)) {}

PageCache::~PageCache() = default;

std::uint64_t PageCache::plan_capacity_bytes(std::uint64_t page_bytes) const {
  const std::uint64_t budget = state_->options().budget_bytes;
  const std::uint64_t ahead = kReadsAhead * page_bytes;
  return budget - std::min(budget / 2, ahead);
}

void PageCache::begin(ExtentPlan plan) {
  state_->begin(std::move(plan));
}
void PageCache::end() {
  state_->end();
}
void PageCache::interrupt() {
  state_->interrupt();
}

PageCache::Use::Use(PageCache& cache, std::size_t index)
    : cache_(cache), index_(index), window_(cache.state_->wait(index)) {}

PageCache::Use::~Use() {
  cache_.state_->release(index_);
}

std::uint64_t PageCache::bytes_read() const {
  return state_->bytes_read();
}
std::uint64_t PageCache::waits() const {
  return state_->waits();
}
double PageCache::seconds_waited() const {
  return state_->seconds_waited();
}
std::uint64_t PageCache::peak_bytes() const {
  return state_->peak_bytes();
}

}  // namespace precast::data
