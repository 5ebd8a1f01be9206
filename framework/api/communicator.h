#pragma once

#include <ATen/core/Tensor.h>

#include <memory>
#include <string>
#include <vector>

namespace precast {

/// Communication between the ranks that train together. All members except rank() and world() are
/// collective: all ranks must call them in the same order. Tensors are on the run's device; work
/// that is queued on the current stream after a call sees the result of that call. If another rank
/// has died or does not respond, a call over Gloo throws Error with ExitCode::peer_failed within
/// the group's time limit. A call over NCCL does not wait for the other ranks and does not report
/// this; the heartbeat ends the process instead. Not thread-safe.
class Communicator {
 public:
  /// A sum over the ranks that is still being computed.
  class PendingSum {
   public:
    virtual ~PendingSum() = default;
    /// Waits for the sum over the ranks and returns it.
    [[nodiscard]] virtual std::int64_t wait() = 0;
  };

  virtual ~Communicator() = default;
  [[nodiscard]] virtual int rank() const = 0;
  [[nodiscard]] virtual int world() const = 0;
  /// Sums each tensor over the ranks, in place. The order of additions is the same in every run
  /// with the same number of ranks.
  virtual void all_reduce_sum(std::vector<at::Tensor> tensors) = 0;
  /// Sums each tensor over the ranks. Only the tensors of `root` receive the sum; on the other
  /// ranks, the values become unspecified.
  virtual void reduce_sum(std::vector<at::Tensor> tensors, int root) = 0;
  /// Copies root's tensors to all ranks.
  virtual void broadcast(std::vector<at::Tensor> tensors, int root) = 0;
  /// Returns the string of every rank, indexed by rank. Communicates between the CPUs, and never
  /// uses the GPU's stream.
  [[nodiscard]] virtual std::vector<std::string> all_gather(const std::string& text) = 0;
  /// Starts summing one number per rank without waiting for the result. Communicates between the
  /// CPUs.
  [[nodiscard]] virtual std::unique_ptr<PendingSum> begin_sum(std::int64_t value) = 0;
};

}  // namespace precast
