#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "framework/api/batch_source.h"

namespace precast::tools {

/// An endless stream of batches, for measurements. Use it from one thread at a time.
class BatchStream {
 public:
  virtual ~BatchStream() = default;
  /// Returns the next batch. Rethrows exceptions of the thread that draws the batches.
  [[nodiscard]] virtual Batch next() = 0;
};

/// The shape of a synthetic batch: images [batch_size, channels, image_size_px, image_size_px]
/// with independent normal values, and labels below `classes`.
struct FakeShape {
  std::int64_t batch_size = 0;
  std::int64_t image_size_px = 0;
  std::int64_t classes = 1000;
  std::int64_t channels = 3;
  at::ScalarType dtype = at::kFloat;
  bool channels_last = true;
  at::Device device = at::kCPU;
};

/// Returns a batch drawn with seed 0. In Python, torch.manual_seed(0), torch.randn() and
/// torch.randint() draw the same batch.
[[nodiscard]] Batch make_fake_batch(const FakeShape& shape);

/// Returns a stream of synthetic batches. `location` (after tensorpack's --fake-location) is one
/// of:
///   device  one batch that stays on the device (also accepted as gpu, tensorpack's name)
///   cpu     drawn again before each step, by the training thread, then copied to the device
///   queue   drawn by a second thread into a queue of four batches
/// @throws ConfigError for another name.
[[nodiscard]] std::unique_ptr<BatchStream> make_fake_stream(const std::string& location,
                                                            const FakeShape& shape);

/// Returns a stream of the batches of `source`, one pass after another. Borrows `source`.
/// @param request the request for the first pass; each later pass has the next epoch number.
[[nodiscard]] std::unique_ptr<BatchStream> make_epochs_stream(BatchSource& source,
                                                              EpochRequest request);

/// Returns a stream that repeats `batch`.
[[nodiscard]] std::unique_ptr<BatchStream> make_fixed_stream(Batch batch);

}  // namespace precast::tools
