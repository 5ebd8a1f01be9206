#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <vector>

#include "framework/api/batch_source.h"
#include "framework/core/export.h"

namespace precast::engine {

/// A source whose waits another thread can look at, such as that of the Watchdog.
class PRECAST_API WatchedSource final : public BatchSource {
 public:
  explicit WatchedSource(std::unique_ptr<BatchSource> source);

  void begin_epoch(const EpochRequest& request) override;
  [[nodiscard]] std::optional<Batch> next() override;
  [[nodiscard]] std::int64_t size(int world) const override { return source_->size(world); }
  [[nodiscard]] std::int64_t samples() const override { return source_->samples(); }
  [[nodiscard]] double seconds_waited() const override { return source_->seconds_waited(); }
  [[nodiscard]] SourceTimes times() const override { return source_->times(); }
  [[nodiscard]] std::vector<ReplacedSample> replaced() const override {
    return source_->replaced();
  }
  /// seconds_waited() as of the last batch, and, during a call of begin_epoch() or next(), the
  /// duration of that call so far. Thread-safe.
  [[nodiscard]] double seconds_waited_so_far() const;

 private:
  using Clock = std::chrono::steady_clock;
  class Call;

  std::unique_ptr<BatchSource> source_;
  mutable std::mutex mutex_;
  double seconds_waited_ = 0;
  /// The start of the present call.
  std::optional<Clock::time_point> since_;
};

}  // namespace precast::engine
