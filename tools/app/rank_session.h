#pragma once

#include <ATen/core/Tensor.h>

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "framework/api/communicator.h"
#include "framework/api/grad_sync.h"
#include "framework/api/model.h"
#include "framework/distributed/grad_sync.h"
#include "framework/distributed/heartbeat.h"
#include "framework/distributed/process_group.h"
#include "framework/launch/rank_info.h"
#include "tools/app/recipe.h"
#include "tools/app/train_config.h"

namespace precast::tools {

/// The value of dist.variable_update.
[[nodiscard]] distributed::VariableUpdate variable_update(const TrainConfig& config);

/// Determines which rank this process is, and checks that the recipe suits the number of ranks.
/// @throws ConfigError
/// @param trains whether the ranks will train.
[[nodiscard]] RankInfo resolve_rank_info(const TrainConfig& config, bool trains = true);

/// Number of ranks that this process must start; 0 if it is itself a rank. Given by `dist.nproc`,
/// or by `training.distributed` with `dist.world_size` (as in ffcv-imagenet's script).
/// @param gpus the number for `dist.nproc: auto`; by default, all GPUs of this host.
/// @throws ConfigError if `dist.nproc` is invalid, or if the recipe does not suit its number of
/// ranks
[[nodiscard]] int ranks_to_launch(const TrainConfig& config, const RankInfo& info,
                                  bool trains = true, std::optional<int> gpus = std::nullopt);

/// Why this host, with `gpus` usable GPUs, cannot run the ranks that a recipe requests; empty if it
/// can. If there are fewer GPUs than ranks, the text names the key and its location. In training
/// with training.batch_size, it also names the global batch to set instead, if the samples of a
/// step can be divided equally among the GPUs.
/// @param trains as in resolve_rank_info().
[[nodiscard]] std::string gpu_problem(const Recipe& recipe, int ranks, int gpus,
                                      bool trains = true);

/// Starts `ranks` processes of this program and supervises them. Check first that there are enough
/// GPUs (gpu_problem()).
/// @param args the arguments after the program's name: the command and its arguments.
/// @return the exit code of the launch (launcher.h).
[[nodiscard]] int launch_ranks(const std::vector<std::string>& args, int ranks);

/// A callback for runs with several ranks. If a process ends without returning from
/// RankSession::run(), the thread that ends it calls this function first.
using OnEnd = std::function<void(int exit_code, const std::string& error)>;

/// This rank's membership in the group: the constructor joins the group, and a thread sends
/// heartbeats until leave() or the destructor is called.
class RankSession {
 public:
  /// Joins the group. Rank 0 logs which ranks joined.
  /// @throws DeviceError if the other ranks do not join, or if NCCL is needed and missing; Error
  /// with ExitCode::preempted if a rank receives a stop signal (StopSignals) before all have
  /// joined.
  RankSession(const TrainConfig& config, const RankInfo& info, at::Device device,
              OnEnd on_end = {});

  [[nodiscard]] Communicator& communicator() { return *communicator_; }
  [[nodiscard]] bool is_rank_zero() const { return communicator_->rank() == 0; }
  [[nodiscard]] std::unique_ptr<GradSync> make_sync(const TrainConfig& config,
                                                    const std::vector<NamedTensor>& trainable);
  /// The parameters that this rank's optimiser updates: all of them, or its share with dist.zero or
  /// a parameter server.
  [[nodiscard]] std::vector<NamedTensor> owned_parameters(
      const TrainConfig& config, const std::vector<NamedTensor>& trainable) const;
  /// Tells the other ranks why this rank is about to end. @return whether this rank is the first to
  /// report a failure.
  bool claim_failure(const std::string& cause);
  /// Ends this rank's membership: the other ranks no longer wait for it.
  void leave() { heartbeat_.reset(); }
  /// Runs `body`. With several ranks, an error ends the process inside this call, because
  /// destructors of the caller's objects might wait for dead ranks; only the rank that failed first
  /// prints the error. With one rank, the exception is passed on.
  int run(const std::function<int()>& body);

 private:
  [[noreturn]] void end(const std::exception_ptr& exception);

  OnEnd on_end_;
  /// Null in a run of one rank.
  distributed::ProcessGroup* group_ = nullptr;
  bool serves_store_ = false;
  std::unique_ptr<Communicator> communicator_;
  std::unique_ptr<distributed::Heartbeat> heartbeat_;
};

}  // namespace precast::tools
