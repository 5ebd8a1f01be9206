#pragma once

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <list>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "tools/experiments/grid/sweep.h"
#include "tools/experiments/trial/trial_pool.h"
#include "tools/experiments/trial/trial_process.h"

namespace precast::tools {

/// Returns a key that is equal for trials that may load the same batches. It consists of the
/// recipe's path and all settings that can change batches. If trials with equal keys load different
/// batches after all, some of them do not use the ring.
[[nodiscard]] std::string loading_key_of(const Trial& trial);

/// The trials of a sweep, reordered so that trials with the same loading_key_of() follow one
/// another.
[[nodiscard]] std::vector<Trial> order_by_cohort(const Sweep& sweep);

/// Loader processes (`precast serve`) for the trials of a pool. Trials with the same
/// loading_key_of() that start together form a cohort, which shares one loader. A trial that starts
/// later, or again, also receives the name of the ring. It loads its batches itself until it
/// reaches the batches in the ring. Not thread-safe.
class SharedLoaders {
 public:
  /// @param program `precast`. @param slots the slots of the pool. @param start_timeout how long a
  /// loader may take to create its ring. If it takes longer, its trials start without waiting for
  /// it.
  SharedLoaders(const Sweep& sweep, std::filesystem::path program, const std::vector<Slot>& slots,
                std::chrono::milliseconds start_timeout = std::chrono::seconds(120));
  SharedLoaders(const SharedLoaders&) = delete;
  SharedLoaders& operator=(const SharedLoaders&) = delete;
  /// Asks the loaders to stop, waits for up to five seconds, and then kills them.
  ~SharedLoaders();

  /// See PoolWatcher. prepare() returns arguments that name the ring; they are empty if the trial
  /// has to load its batches itself, for example because it would be the only user of a ring. It
  /// returns nothing while a loader starts.
  /// @throws IoError if a loader cannot be started. @{
  [[nodiscard]] std::optional<std::vector<std::string>> prepare(const NextStart& next);
  void ended(const Trial& trial);
  /// @}
  /// Call several times a second.
  void update();
  /// Number of cohorts whose loader or trials are still running.
  [[nodiscard]] std::size_t cohort_count() const { return cohorts_.size(); }

 private:
  struct Cohort {
    std::string loading_key;
    std::string ring;
    std::filesystem::path output;
    std::unique_ptr<TrialProcess> process;
    std::chrono::steady_clock::time_point start;
    std::size_t size = 0;
    /// Whether the ring accepts consumers, or the loader has taken too long to create it.
    bool ready = false;
    /// Number of trials that have joined, counted up to `size`.
    std::size_t members = 0;
    /// All running trials that received the name of the ring.
    std::set<std::string> running = {};
    bool stopped = false;
  };
  [[nodiscard]] Cohort* newest(const std::string& loading_key);
  [[nodiscard]] bool is_starting(Cohort& cohort);
  [[nodiscard]] std::size_t slots_free_soon() const;
  void start(const NextStart& next, const std::string& loading_key, std::size_t size);
  [[nodiscard]] std::vector<std::string> join(Cohort& cohort, const Trial& trial);

  const std::filesystem::path folder_;
  const std::filesystem::path program_;
  const std::chrono::milliseconds start_timeout_;
  std::vector<int> cores_;
  std::list<Cohort> cohorts_;
  /// The keys (loading_key_of()) for which no loader could start. Trials with these keys load their
  /// batches themselves.
  std::set<std::string> failed_keys_;
  int started_ = 0;
};

/// The number of samples that the loaders of a sweep have decoded, and the number that they have
/// delivered to trials, according to their records.
struct SharedDecodes {
  std::uint64_t decoded = 0;
  std::uint64_t delivered = 0;

  /// The number of additional samples that the trials would have decoded without shared loaders.
  [[nodiscard]] std::uint64_t saved() const {
    return delivered > decoded ? delivered - decoded : 0;
  }
};
/// @param folder the folder of the sweep. @return nothing if no loader has been started.
[[nodiscard]] std::optional<SharedDecodes> count_shared_decodes(
    const std::filesystem::path& folder);

}  // namespace precast::tools
