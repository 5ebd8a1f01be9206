#include "tests/support/cuda_on_host.h"

#include <fmt/core.h>

#include <algorithm>
#include <exception>
#include <memory>
#include <numeric>
#include <random>
#include <string_view>
#include <utility>
#include <vector>

#include "tests/support/fiber.h"

#if defined(PRECAST_THREAD_SANITIZER)
#include <sanitizer/tsan_interface.h>
#endif

uint3 threadIdx;
uint3 blockIdx;
dim3 blockDim;
dim3 gridDim;

namespace precast::cuda_on_host {
namespace {

// Limits of every GPU from sm_80 on (CUDA C++ Programming Guide, "Compute Capabilities"); the limit
// of shared memory is that of sm_90 for kernels that opt in.
constexpr std::uint64_t kMaxThreads = 1024;
constexpr unsigned kMaxBlockZ = 64;
constexpr unsigned kMaxGridX = 0x7fffffff;
constexpr unsigned kMaxGridYZ = 65535;
constexpr std::size_t kMaxSharedBytes = 227 << 10;
/// The launch fails if no thread reaches a barrier, a warp operation or its end within this number
/// of switches per thread of the block.
constexpr std::uint64_t kMaxIdleSwitches = 10000;

/// Annotations for ThreadSanitizer, which instruments the kernels but not this file: accesses
/// before tsan_release(location) happen before accesses after tsan_acquire(location).
#if defined(PRECAST_THREAD_SANITIZER)
void tsan_release(void* location) {
  __tsan_release(location);
}
void tsan_acquire(void* location) {
  __tsan_acquire(location);
}
#else
void tsan_release(void* /*location*/) {}
void tsan_acquire(void* /*location*/) {}
#endif

enum class PendingOp { reschedule, block_barrier, warp_barrier, ballot, shuffle, none };

std::string name_of(PendingOp pending) {
  switch (pending) {
    case PendingOp::block_barrier:
      return "__syncthreads";
    case PendingOp::warp_barrier:
      return "__syncwarp";
    case PendingOp::ballot:
      return "__ballot_sync";
    default:
      return "__shfl_sync";
  }
}

/// A thread of the block. At a barrier, warp operation or atomic, it stores the operation here and
/// suspends its fiber. The scheduler, on the stack of run_grid's caller, completes the operation
/// and resumes the fiber.
struct Thread {
  std::unique_ptr<test::Fiber> fiber;
  uint3 index{};
  PendingOp pending = PendingOp::none;
  unsigned mask = 0;
  unsigned source = 0;
  std::uint64_t bits = 0;
  std::source_location where;
  unsigned barriers_passed = 0;
  std::exception_ptr exception;
};

std::string location(const std::source_location& where) {
  const std::string file = where.file_name();
  return fmt::format("{}:{}", file.substr(file.rfind('/') + 1), where.line());
}

bool is_same(const std::source_location& a, const std::source_location& b) {
  return a.line() == b.line() && a.column() == b.column() &&
         (a.file_name() == b.file_name() || std::string_view(a.file_name()) == b.file_name());
}

class Scheduler {
 public:
  void set_seed(std::uint64_t seed) { random_.seed(seed); }
  void run_grid(dim3 grid, dim3 block, std::size_t shared_bytes,
                const std::function<void()>& thread);

  // Called on the fibers.
  Thread& current() { return threads_[current_]; }
  unsigned lane() const { return current_ % 32; }
  std::byte* dynamic_shared() { return dynamic_shared_.get(); }
  std::uint64_t block_number() const { return block_number_; }
  void wait(Thread& me) {
    tsan_release(&end_sync_);  // the thread may be abandoned here
    me.fiber->suspend();
  }
  void* barrier_sync(unsigned number) { return &barrier_syncs_[number % 2]; }
  void* warp_sync() { return &warp_syncs_[current_ / 32]; }

 private:
  void prepare_threads(std::uint64_t count);
  void run_block();
  void run_thread(unsigned t);
  void handle_pending(unsigned t);
  void release_block();
  void try_complete_warp(unsigned first, unsigned mask);
  void recheck_warp(unsigned first);
  [[noreturn]] void fail(KernelFault::Kind kind, const std::string& what);
  [[noreturn]] void fail_missing_threads();
  [[nodiscard]] std::string describe(unsigned t) const;
  void resume_later(unsigned t) {
    threads_[t].pending = PendingOp::reschedule;
    ready_.push_back(t);
  }

  std::mt19937_64 random_{1};
  const std::function<void()>* thread_ = nullptr;
  std::vector<Thread> threads_;  // as many as the largest launch so far
  unsigned count_ = 0;           // threads per block of this launch
  unsigned current_ = 0;
  unsigned at_barrier_ = 0, returned_ = 0;
  std::uint64_t idle_switches_ = 0;
  std::uint64_t block_number_ = 0;  // over all launches
  std::vector<unsigned> ready_;
  std::unique_ptr<std::byte[]> dynamic_shared_;
  char launch_sync_ = 0, end_sync_ = 0;
  char barrier_syncs_[2] = {};
  char warp_syncs_[32] = {};
};

Scheduler& scheduler() {
  static Scheduler one;
  return one;
}

void Scheduler::prepare_threads(std::uint64_t count) {
  count_ = static_cast<unsigned>(count);
  if (threads_.size() < count_) threads_.resize(count_);
  for (Thread& thread : threads_) {
    if (thread.pending != PendingOp::none)
      thread.fiber.reset();  // abandoned by a launch that failed
    thread.pending = PendingOp::none;
    if (thread.fiber) continue;
    thread.fiber = std::make_unique<test::Fiber>([this] {
      Thread& me = current();
      tsan_acquire(&launch_sync_);
      try {
        (*thread_)();
      } catch (...) {
        me.exception = std::current_exception();
      }
      tsan_release(&end_sync_);
      me.pending = PendingOp::none;
    });
  }
}

void Scheduler::run_grid(dim3 grid, dim3 block, std::size_t shared_bytes,
                         const std::function<void()>& thread) {
  const std::uint64_t threads = std::uint64_t{block.x} * block.y * block.z;
  const std::uint64_t blocks = std::uint64_t{grid.x} * grid.y * grid.z;
  if (threads == 0 || threads > kMaxThreads || block.z > kMaxBlockZ || blocks == 0 ||
      grid.x > kMaxGridX || std::max(grid.y, grid.z) > kMaxGridYZ ||
      shared_bytes > kMaxSharedBytes) {
    throw KernelFault(
        KernelFault::Kind::launch,
        fmt::format(
            "kernel launch: expected sizes that a GPU supports, got a grid of {} x {} x {}, "
            "blocks of {} x {} x {} and {} bytes of shared memory",
            grid.x, grid.y, grid.z, block.x, block.y, block.z, shared_bytes));
  }
  thread_ = &thread;
  gridDim = grid;
  blockDim = block;
  prepare_threads(threads);
  dynamic_shared_.reset(new std::byte[shared_bytes]);
  std::vector<std::uint64_t> order(blocks);
  std::iota(order.begin(), order.end(), std::uint64_t{0});
  std::shuffle(order.begin(), order.end(), random_);
  for (const std::uint64_t b : order) {
    blockIdx = {static_cast<unsigned>(b % grid.x), static_cast<unsigned>(b / grid.x % grid.y),
                static_cast<unsigned>(b / grid.x / grid.y)};
    std::fill_n(dynamic_shared_.get(), shared_bytes, std::byte{0xff});
    ++block_number_;
    run_block();
  }
}

void Scheduler::run_block() {
  at_barrier_ = returned_ = 0;
  idle_switches_ = 0;
  ready_.clear();
  for (unsigned t = 0; t < count_; ++t) {
    Thread& thread = threads_[t];
    thread.index = {t % blockDim.x, t / blockDim.x % blockDim.y, t / blockDim.x / blockDim.y};
    thread.exception = nullptr;
    thread.barriers_passed = 0;
    resume_later(t);
  }
  tsan_release(&launch_sync_);
  while (!ready_.empty()) {
    std::swap(ready_[random_() % ready_.size()], ready_.back());
    const unsigned t = ready_.back();
    ready_.pop_back();
    run_thread(t);
    handle_pending(t);
  }
  tsan_acquire(&end_sync_);
  if (returned_ != count_) fail_missing_threads();
}

void Scheduler::run_thread(unsigned t) {
  current_ = t;
  threadIdx = threads_[t].index;
  threads_[t].fiber->resume();
  if (++idle_switches_ > kMaxIdleSwitches * count_) {
    fail(KernelFault::Kind::spinning,
         fmt::format("expected threads to make progress, got {} switches without a thread at a "
                     "barrier or at its end",
                     idle_switches_));
  }
}

void Scheduler::handle_pending(unsigned t) {
  Thread& thread = threads_[t];
  if (thread.exception) {
    tsan_acquire(&end_sync_);
    try {
      std::rethrow_exception(std::exchange(thread.exception, nullptr));
    } catch (const std::exception& thrown) {
      fail(KernelFault::Kind::exception,
           fmt::format("expected no exception, got {}", thrown.what()));
    }
  }
  if (thread.pending != PendingOp::reschedule) idle_switches_ = 0;
  switch (thread.pending) {
    case PendingOp::reschedule:
      ready_.push_back(t);
      return;
    case PendingOp::none:
      ++returned_;
      return recheck_warp(t / 32 * 32);
    case PendingOp::block_barrier:
      if (++at_barrier_ == count_) release_block();
      return;
    default:
      if ((thread.mask >> (t % 32) & 1) == 0) {
        fail(KernelFault::Kind::warp_operation,
             fmt::format("expected a mask that contains the calling lane, got {:#x} by {}",
                         thread.mask, describe(t)));
      }
      return try_complete_warp(t / 32 * 32, thread.mask);
  }
}

void Scheduler::release_block() {
  std::uint64_t predicate_count = 0;
  for (unsigned t = 0; t < count_; ++t) {
    predicate_count += threads_[t].bits;
    if (!is_same(threads_[t].where, threads_[0].where)) {
      fail(KernelFault::Kind::divergent_barrier,
           fmt::format("expected all threads at the same barrier, got {} and {}", describe(0),
                       describe(t)));
    }
  }
  at_barrier_ = 0;
  for (unsigned t = 0; t < count_; ++t) {
    threads_[t].bits = predicate_count;
    resume_later(t);
  }
}

/// Completes the operation of the lanes in the mask if all of them have arrived or returned.
void Scheduler::try_complete_warp(unsigned first, unsigned mask) {
  const unsigned lanes = std::min(32u, count_ - first);
  std::vector<unsigned> caller;
  for (unsigned lane = 0; lane < lanes; ++lane) {
    const Thread& thread = threads_[first + lane];
    if ((mask >> lane & 1) == 0 || thread.pending == PendingOp::none) continue;
    const bool in_warp_operation = thread.pending == PendingOp::warp_barrier ||
                                   thread.pending == PendingOp::ballot ||
                                   thread.pending == PendingOp::shuffle;
    if (!in_warp_operation || thread.mask != mask) return;
    caller.push_back(first + lane);
  }
  std::uint64_t sent[32];
  std::ranges::fill(sent, ~std::uint64_t{0});
  std::uint64_t ballot = 0;
  for (const unsigned t : caller) {
    if (threads_[t].pending != threads_[caller[0]].pending) {
      fail(KernelFault::Kind::warp_operation,
           fmt::format("expected the same operation in all lanes, got {} and {}",
                       describe(caller[0]), describe(t)));
    }
    sent[t - first] = threads_[t].bits;
    ballot |= (threads_[t].bits & 1) << (t - first);
  }
  for (const unsigned t : caller) {
    threads_[t].bits =
        threads_[t].pending == PendingOp::ballot ? ballot : sent[threads_[t].source % 32];
    resume_later(t);
  }
}

void Scheduler::recheck_warp(unsigned first) {
  for (unsigned t = first; t < std::min(first + 32, count_); ++t) {
    const PendingOp pending = threads_[t].pending;
    if (pending == PendingOp::warp_barrier || pending == PendingOp::ballot ||
        pending == PendingOp::shuffle) {
      try_complete_warp(first, threads_[t].mask);
    }
  }
}

void Scheduler::fail(KernelFault::Kind kind, const std::string& what) {
  tsan_acquire(&end_sync_);
  throw KernelFault(
      kind, fmt::format("kernel: {} (block {}, {}, {})", what, blockIdx.x, blockIdx.y, blockIdx.z));
}

void Scheduler::fail_missing_threads() {
  unsigned waiting = 0;
  while (threads_[waiting].pending == PendingOp::none) ++waiting;
  fail(KernelFault::Kind::missing_threads,
       fmt::format(
           "expected no thread to wait forever, got {} of {} waiting and {} returned; one that "
           "waits: {}",
           count_ - returned_, count_, returned_, describe(waiting)));
}

std::string Scheduler::describe(unsigned t) const {
  const Thread& thread = threads_[t];
  return fmt::format("thread {}, {}, {} in {} of {}", thread.index.x, thread.index.y,
                     thread.index.z, name_of(thread.pending), location(thread.where));
}

std::uint64_t warp_operation(PendingOp what, unsigned mask, std::uint64_t bits, unsigned source,
                             const std::source_location& where) {
  Thread& me = scheduler().current();
  me.pending = what;
  me.mask = mask;
  me.bits = bits;
  me.source = source;
  me.where = where;
  scheduler().wait(me);
  return me.bits;
}

std::function<void()>& launch_observer() {
  static std::function<void()> observer;
  return observer;
}

}  // namespace

void set_launch_observer(std::function<void()> observer) {
  launch_observer() = std::move(observer);
}

void set_thread_order(std::uint64_t seed) {
  scheduler().set_seed(seed);
}

void run_grid(dim3 grid, dim3 block, std::size_t shared_bytes,
              const std::function<void()>& thread) {
  scheduler().run_grid(grid, block, shared_bytes, thread);
  if (launch_observer()) launch_observer()();
}

void poison_once_per_block(void* memory, std::size_t bytes, std::uint64_t& poisoned_for) {
  if (poisoned_for == scheduler().block_number()) return;
  poisoned_for = scheduler().block_number();
  // Not std::fill, which may be compiled to a memset that ThreadSanitizer intercepts.
  for (volatile char* byte = static_cast<char*>(memory); bytes > 0; ++byte, --bytes) *byte = -1;
}

void* dynamic_shared_memory() {
  return scheduler().dynamic_shared();
}

int wait_for_block(bool predicate, std::source_location where) {
  Thread& me = scheduler().current();
  me.pending = PendingOp::block_barrier;
  me.bits = predicate ? 1 : 0;
  me.where = where;
  // Alternates between two addresses: a thread may reach the next barrier before another thread has
  // left this one.
  void* const ordered = scheduler().barrier_sync(me.barriers_passed++);
  tsan_release(ordered);
  scheduler().wait(me);
  tsan_acquire(ordered);
  return static_cast<int>(me.bits);
}

void wait_for_warp(unsigned mask, std::source_location where) {
  void* const ordered = scheduler().warp_sync();
  tsan_release(ordered);
  warp_operation(PendingOp::warp_barrier, mask, 0, 0, where);
  tsan_acquire(ordered);
}

unsigned ballot(unsigned mask, bool predicate, std::source_location where) {
  return static_cast<unsigned>(
      warp_operation(PendingOp::ballot, mask, predicate ? 1 : 0, 0, where));
}

std::uint64_t shuffle(unsigned mask, std::uint64_t bits, unsigned source,
                      std::source_location where) {
  return warp_operation(PendingOp::shuffle, mask, bits, source, where);
}

unsigned lane() {
  return scheduler().lane();
}

void yield() {
  Thread& me = scheduler().current();
  me.pending = PendingOp::reschedule;
  scheduler().wait(me);
}

}  // namespace precast::cuda_on_host
