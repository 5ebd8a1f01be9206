#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "data/loader/batch_layout.h"
#include "data/loader/loader.h"
#include "data/ring/consumer.h"
#include "data/ring/ring_position.h"
#include "framework/core/export.h"

namespace precast::data {

/// The ring from which a SharedLoader takes batches.
struct SharedRing {
  /// Empty: there is no ring, and all batches are loaded privately.
  std::string name;
  /// The ring is used only if its description equals this string.
  std::string description = {};
  /// The options of the RingConsumer. If `stopped` returns true while the loader waits for the
  /// ring, the loader loads its batches privately.
  RingConsumerOptions options = {};
  /// The longest wait for a batch. After that, the loader loads the rest of the pass privately.
  /// Must be shorter than the time limit of a watchdog.
  std::chrono::milliseconds timeout = std::chrono::minutes(10);
};

/// A loader that takes its batches from a ring. If the ring has passed the position that the loader
/// needs, does not exist, fails or ends, the loader loads its batches itself, with a private
/// Loader. The content of the batches is the same in both cases. The private loader, with its
/// threads and memory, exists only while it is needed. Use a SharedLoader from one thread.
class PRECAST_API SharedLoader {
 public:
  /// Borrows `reader`, which must outlive the loader. @throws the errors of Loader's constructor;
  /// with a ring, an option that is out of range is an error only when the private loader is
  /// created.
  SharedLoader(const BetonReader& reader, Pipeline pipeline, LoaderOptions options,
               SharedRing ring = {});
  SharedLoader(const SharedLoader&) = delete;
  SharedLoader& operator=(const SharedLoader&) = delete;
  ~SharedLoader();

  /// Like the functions of Loader. With a ring, begin_epoch() and next() wait for a ring that is
  /// behind. The data of a batch from a ring is read-only. @{
  void begin_epoch(const EpochRequest& request);
  [[nodiscard]] std::optional<HostBatch> next();
  [[nodiscard]] bool ready();
  [[nodiscard]] std::int64_t batches(int world = 1, int rank = 0) const;
  [[nodiscard]] std::int64_t samples(int world = 1, int rank = 0) const;
  /// @}
  /// Statistics since construction, of all private loaders together. Samples that the ring's loader
  /// replaced are not included: only the producer's process knows them. @{
  [[nodiscard]] SourceTimes times() const;
  [[nodiscard]] std::vector<ReplacedSample> replaced() const;
  /// @}
  /// Seconds that next() and begin_epoch() have waited for workers and for the ring.
  [[nodiscard]] double seconds_waited() const;
  /// Whether batches currently come from the ring. If so, each batch that is not released occupies
  /// a slot of the ring.
  [[nodiscard]] bool on_ring() const { return on_ring_; }
  /// Number of samples in all batches from the ring so far.
  [[nodiscard]] std::int64_t samples_shared() const { return samples_shared_; }

 private:
  using Clock = std::chrono::steady_clock;
  [[nodiscard]] Loader& private_loader();
  void drop_private_loader();
  void load_privately();
  /// Tries to take batches from the ring, from `position_` on. @return on_ring().
  bool join();
  bool attach();
  void leave(const char* reason);
  [[nodiscard]] bool stopped() const { return ring_.options.stopped && ring_.options.stopped(); }
  /// Returns whether the loader has waited too long. If so, it will not use the ring in the rest of
  /// the pass.
  bool check_timeout();
  [[nodiscard]] std::optional<HostBatch> next_from_ring();
  void check(const HostBatch& batch);

  const BetonReader& reader_;
  const Pipeline pipeline_;
  const LoaderOptions options_;
  const SharedRing ring_;
  const std::uint64_t order_samples_;
  std::vector<Output> outputs_;

  EpochRequest request_;
  std::optional<BatchLayout> layout_;
  /// The position of the next batch.
  RingPosition position_;
  /// Number of batches in the pass.
  std::int64_t end_ = 0;

  std::unique_ptr<RingConsumer> consumer_;
  /// The position of the item that `consumer_` returned last, or of its first item if it has not
  /// returned any.
  RingPosition consumer_position_;
  bool on_ring_ = false;
  /// Whether the ring cannot be used because it has different batches.
  bool incompatible_ = false;
  bool warned_ = false;
  bool passed_logged_ = false;
  /// The epoch in which the loader does not try to join the ring again, because it waited too long,
  /// or because the producer did not respond or did not admit it; -1: no such epoch.
  std::int64_t private_epoch_ = -1;
  Clock::time_point waiting_since_;
  Clock::time_point next_try_;
  std::int64_t samples_shared_ = 0;
  double ring_seconds_ = 0;

  std::unique_ptr<Loader> loader_;
  bool loading_ = false;
  /// Statistics of the private loaders that were dropped. @{
  SourceTimes past_times_;
  double past_seconds_ = 0;
  std::vector<ReplacedSample> past_replaced_;
  /// @}
};

}  // namespace precast::data
