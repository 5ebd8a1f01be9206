#include "framework/engine/watched_source.h"

#include <utility>

namespace precast::engine {

/// Records the start of a call of begin_epoch() or next(), and its end in the destructor.
class WatchedSource::Call {
 public:
  explicit Call(WatchedSource& owner) : owner_(owner) {
    const std::scoped_lock lock(owner_.mutex_);
    owner_.since_ = Clock::now();
  }
  Call(const Call&) = delete;
  Call& operator=(const Call&) = delete;
  ~Call() {
    const double waited = owner_.source_->seconds_waited();
    const std::scoped_lock lock(owner_.mutex_);
    owner_.seconds_waited_ = waited;
    owner_.since_.reset();
  }

 private:
  WatchedSource& owner_;
};

WatchedSource::WatchedSource(std::unique_ptr<BatchSource> source) : source_(std::move(source)) {}

void WatchedSource::begin_epoch(const EpochRequest& request) {
  const Call call(*this);
  source_->begin_epoch(request);
}

std::optional<Batch> WatchedSource::next() {
  const Call call(*this);
  return source_->next();
}

double WatchedSource::seconds_waited_so_far() const {
  const std::scoped_lock lock(mutex_);
  if (!since_) return seconds_waited_;
  return seconds_waited_ + std::chrono::duration<double>(Clock::now() - *since_).count();
}

}  // namespace precast::engine
