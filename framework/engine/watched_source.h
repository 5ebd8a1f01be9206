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

/// Wraps a source. Other threads, such as the Watchdog's, can query how long the source has waited.
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
  /// The value of seconds_waited() at the end of the last call of begin_epoch() or next(), plus,
  /// during such a call, the duration of the call so far. Thread-safe.
  [[nodiscard]] double seconds_waited_so_far() const;

 private:
  using Clock = std::chrono::steady_clock;
  class Call;

  std::unique_ptr<BatchSource> source_;
  mutable std::mutex mutex_;
  double seconds_waited_ = 0;
  /// The start of the current call; empty between calls.
  std::optional<Clock::time_point> since_;
};

}  // namespace precast::engine
