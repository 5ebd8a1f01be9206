#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "framework/api/batch.h"
#include "framework/api/epoch_request.h"
#include "framework/api/replaced_sample.h"
#include "framework/api/source_times.h"

namespace precast {

/// Where batches come from. One thread at a time.
class BatchSource {
 public:
  virtual ~BatchSource() = default;
  /// Starts a pass; a pass that is still running is given up.
  virtual void begin_epoch(const EpochRequest& request) = 0;
  /// The next batch in order, or nothing at the end of the pass. Rethrows what a worker threw.
  [[nodiscard]] virtual std::optional<Batch> next() = 0;
  /// Batches in a whole pass of the rank that has most of them.
  [[nodiscard]] virtual std::int64_t size(int world) const = 0;
  /// Samples in a whole pass of a single rank (those of a dropped last batch not counted).
  [[nodiscard]] virtual std::int64_t samples() const = 0;
  /// Seconds that next() has waited for data since the source was made.
  [[nodiscard]] virtual double seconds_waited() const = 0;
  /// What the makers of batches did meanwhile; all 0 where that is not known.
  [[nodiscard]] virtual SourceTimes times() const { return {}; }
  /// Damaged samples that others have taken the place of since the source was made.
  [[nodiscard]] virtual std::vector<ReplacedSample> replaced() const { return {}; }
};

}  // namespace precast
