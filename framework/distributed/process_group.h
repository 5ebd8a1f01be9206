#pragma once

#include <atomic>
#include <chrono>
#include <memory>
#include <string>
#include <vector>

#include "framework/api/communicator.h"
#include "framework/core/export.h"

namespace precast::distributed {

/// The transport for tensors on the run's device.
enum class Transport {
  /// NCCL between GPUs, Gloo between CPUs.
  by_device,
  /// Gloo between GPUs too, through the host's memory. This is slow, but several ranks can share
  /// one GPU, which NCCL does not support.
  gloo,
};

struct GroupOptions {
  int rank = 0;
  int world = 1;
  /// Address and port of the store through which the ranks find each other.
  std::string host = "127.0.0.1";
  int port = 0;
  /// Whether this process serves the store (rank 0, unless a launcher does).
  bool serves_store = false;
  /// The prefix of all keys in the store.
  std::string prefix{};
  /// Whether the store may contain keys of earlier runs, as the store of torchrun's agents does
  /// after a restart. ProcessGroup then appends a number that no earlier run has used to `prefix`.
  /// Rank 0 sends this number to the other ranks.
  bool store_is_reused = false;
  /// A GPU must have an index.
  at::Device device = at::kCPU;
  Transport transport = Transport::by_device;
  /// A collective that takes longer counts as failed. Heartbeat detects dead ranks sooner.
  std::chrono::milliseconds timeout{120'000};
  /// How long the ranks may take to find each other.
  std::chrono::milliseconds join_timeout{300'000};
  /// Becomes true when this rank is asked to stop. If that happens on any rank before all ranks
  /// have connected, all ranks stop waiting. May be null.
  const std::atomic<bool>* stop = nullptr;
};

/// The ranks of a run, implemented with c10d. They find each other through a TCPStore and
/// communicate through NCCL between GPUs and through Gloo between CPUs. Strings and single numbers
/// always go over Gloo. Even in a group of one rank, collectives use the transport.
///
/// Neither the store nor the transports authenticate peers: use them only in a private network.
class PRECAST_API ProcessGroup final : public Communicator {
 public:
  /// Waits for all ranks; rank 0 prints from time to time which ranks are missing. @throws
  /// DeviceError naming the ranks that do not connect within join_timeout or that connect twice;
  /// DeviceError if NCCL is needed but this build or this machine does not have it; Error with
  /// ExitCode::preempted on all ranks if GroupOptions::stop ends the wait.
  explicit ProcessGroup(const GroupOptions& options);
  ProcessGroup(const ProcessGroup&) = delete;
  ProcessGroup& operator=(const ProcessGroup&) = delete;
  ~ProcessGroup() override;

  /// The constructor's options, with the prefix of this group's keys (GroupOptions::prefix).
  [[nodiscard]] const GroupOptions& options() const;
  [[nodiscard]] int rank() const override;
  [[nodiscard]] int world() const override;
  void all_reduce_sum(std::vector<at::Tensor> tensors) override;
  void reduce_sum(std::vector<at::Tensor> tensors, int root) override;
  void broadcast(std::vector<at::Tensor> tensors, int root) override;
  [[nodiscard]] std::vector<std::string> all_gather(const std::string& text) override;
  [[nodiscard]] std::unique_ptr<PendingSum> begin_sum(std::int64_t value) override;

  /// The c10d objects, for the other files of this folder.
  struct Parts;
  [[nodiscard]] Parts& parts() { return *parts_; }

 private:
  std::unique_ptr<Parts> parts_;
};

}  // namespace precast::distributed
