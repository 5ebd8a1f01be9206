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
  /// Rethrows an exception of the thread that makes the batches.
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

/// One batch drawn with seed 0. In Python, torch.manual_seed(0), torch.randn() and torch.randint()
/// draw the same batch.
[[nodiscard]] Batch make_fake_batch(const FakeShape& shape);

/// Where synthetic data comes from (after tensorpack's --fake-location):
///   device  one batch that stays on the device (also accepted as gpu, tensorpack's name)
///   cpu     drawn again before each step, by the training thread, then copied to the device
///   queue   drawn by a second thread into a queue of four batches
/// @throws ConfigError for another name.
[[nodiscard]] std::unique_ptr<BatchStream> make_fake_stream(const std::string& location,
                                                            const FakeShape& shape);

/// The batches of a dataset, one pass after another. Borrows `source`. @param request with the
/// number of the first epoch.
[[nodiscard]] std::unique_ptr<BatchStream> make_epochs_stream(BatchSource& source,
                                                              EpochRequest request);

/// Returns `batch` again and again.
[[nodiscard]] std::unique_ptr<BatchStream> make_fixed_stream(Batch batch);

}  // namespace precast::tools
