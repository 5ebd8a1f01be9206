#pragma once

#include <functional>
#include <set>
#include <string>

#include "models/detail/sync_batch_norm.h"

namespace precast::test {

/// A batch of images, divided between two ranks.
struct SplitBatch {
  at::Device device = at::kCPU;
  at::ScalarType type = at::kFloat;
  bool channels_last = false;
  /// Number of images of rank 0 and of rank 1.
  std::int64_t first = 6;
  std::int64_t second = 6;
};

using Normalize =
    std::function<at::Tensor(const at::Tensor& x, const models::detail::SyncBatchNorm& norm)>;

/// Runs two ranks (threads), which normalise their parts with `normalize`. Expects the same
/// outputs, gradients and running statistics, except for rounding errors, as from torch's
/// BatchNorm2d on the undivided batch, in float64 on the CPU.
void expect_one_batch(const Normalize& normalize, const SplitBatch& split);

/// The names of all operators that `body` calls, in every thread.
[[nodiscard]] std::set<std::string> operators_called(const std::function<void()>& body);

/// The operators in `called` that make the host wait for a device.
[[nodiscard]] std::set<std::string> waiting_operators(const std::set<std::string>& called);

}  // namespace precast::test
