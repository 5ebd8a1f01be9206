#pragma once

#include <ATen/core/Tensor.h>

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "framework/api/communicator.h"
#include "framework/api/grad_sync.h"
#include "framework/api/model.h"
#include "framework/distributed/heartbeat.h"
#include "framework/distributed/process_group.h"
#include "framework/launch/rank_info.h"
#include "tools/app/train_config.h"

namespace precast::tools {

/// Which rank this process is; the recipe's dist.world_size becomes the number of ranks that there
/// are. @throws ConfigError
[[nodiscard]] RankInfo find_ranks(TrainConfig& config);

/// How many ranks this process itself has to start, and 0 if it is one of them: `dist.nproc`, or
/// `training.distributed` with `dist.world_size` (as ffcv-imagenet's script). @throws ConfigError
[[nodiscard]] int ranks_to_launch(const TrainConfig& config, const RankInfo& info);

/// Starts that many processes of this program and looks after them.
/// @param args what follows the program's name: the command and its arguments.
/// @return the exit code of all.
[[nodiscard]] int launch_ranks(const std::vector<std::string>& args, int ranks);

/// This rank's membership: joined in the constructor, kept alive until the end.
class RankSession {
 public:
  /// Rank 0 says who has come. @throws DeviceError if the other ranks do not come.
  RankSession(const TrainConfig& config, const RankInfo& info, at::Device device);

  [[nodiscard]] Communicator& communicator() { return *communicator_; }
  [[nodiscard]] bool leads() const { return communicator_->rank() == 0; }
  [[nodiscard]] std::unique_ptr<GradSync> make_sync(const TrainConfig& config,
                                                    const std::vector<NamedTensor>& trainable);
  /// Those of them that this rank's optimiser updates: all, or its share where dist.zero or a
  /// parameter server divides them.
  [[nodiscard]] std::vector<NamedTensor> updated_here(
      const TrainConfig& config, const std::vector<NamedTensor>& trainable) const;
  /// Tells the other ranks why this one is about to end. @return whether it is the first to say so.
  bool claim_failure(const std::string& cause);
  /// The end of the work that ranks share: the others no longer count on this one.
  void leave() { heartbeat_.reset(); }
  /// Runs `body`. If it throws, the first cause of all ranks is printed once, by the rank that has
  /// it, and the process ends without unwinding what may wait for dead peers.
  int run(const std::function<int()>& body);

 private:
  [[noreturn]] void end(const std::exception_ptr& exception);

  /// Null in a run of one rank.
  distributed::ProcessGroup* group_ = nullptr;
  bool serves_store_ = false;
  std::unique_ptr<Communicator> communicator_;
  std::unique_ptr<distributed::Heartbeat> heartbeat_;
};

}  // namespace precast::tools
