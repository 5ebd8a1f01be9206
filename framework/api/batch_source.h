#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "framework/api/batch.h"
#include "framework/api/epoch_request.h"
#include "framework/api/replaced_sample.h"
#include "framework/api/source_times.h"

namespace precast {

/// Supplies the batches of a run. Use it from one thread at a time.
class BatchSource {
 public:
  virtual ~BatchSource() = default;
  /// Starts a pass over the data; a pass that is still running is abandoned. If the run is asked to
  /// stop during this call, the pass may have no batches, whatever the number of ranks.
  virtual void begin_epoch(const EpochRequest& request) = 0;
  /// The next batch in order, or nothing at the end of the pass. In a run with one rank, also
  /// returns nothing if the run is asked to stop during the wait for a batch. Rethrows an exception
  /// of a worker thread.
  [[nodiscard]] virtual std::optional<Batch> next() = 0;
  /// Number of batches in a full pass, on the rank with the most batches.
  [[nodiscard]] virtual std::int64_t size(int world) const = 0;
  /// Number of samples in a full pass by a single rank, without the samples of a dropped last
  /// batch.
  [[nodiscard]] virtual std::int64_t samples() const = 0;
  /// Seconds that begin_epoch() and next() have waited for data since the source was created.
  [[nodiscard]] virtual double seconds_waited() const = 0;
  /// How the threads that make batches have spent their time so far; all 0 if the source does not
  /// measure it.
  [[nodiscard]] virtual SourceTimes times() const { return {}; }
  /// Damaged samples that were replaced by others since the source was created.
  [[nodiscard]] virtual std::vector<ReplacedSample> replaced() const { return {}; }
};

}  // namespace precast
