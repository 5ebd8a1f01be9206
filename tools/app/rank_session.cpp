#include "tools/app/rank_session.h"

#include <ATen/Parallel.h>
#include <fmt/core.h>
#include <unistd.h>

#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <map>
#include <thread>

#include "framework/api/single_rank.h"
#include "framework/core/error.h"
#include "framework/core/log.h"
#include "framework/core/parse_number.h"
#include "framework/core/system.h"
#include "framework/distributed/grad_sync.h"
#include "framework/launch/launcher.h"
#include "framework/process/stop_signals.h"
#include "tools/app/resolved_run.h"
#include "tools/app/torch_errors.h"
#include "tools/app/train_config_check.h"
#include "tools/cli/command.h"

namespace precast::tools {
namespace {

constexpr int kPeerFailed = static_cast<int>(ExitCode::peer_failed);
/// Longer than a rank needs to notice another rank's failure (Heartbeat).
constexpr std::chrono::milliseconds kExitGracePeriod{1500};

int parse_port(const std::string& text) {
  const auto port = parse_number<int>(text);
  if (!port || *port < 1 || *port > 65535)
    throw ConfigError(fmt::format("dist.port: expected 1 to 65535, got '{}'", text));
  return *port;
}

int parse_nproc(const std::string& text) {
  const auto ranks = parse_number<int>(text);
  if (!ranks || *ranks < 1 || *ranks > 4096)
    throw ConfigError(fmt::format("dist.nproc: expected auto or 1 to 4096, got '{}'", text));
  return *ranks;
}

/// Whether the program that started the ranks serves c10d's store.
bool store_is_served(const RankInfo& info) {
  if (info.source == "precast") return true;
  const char* agent = std::getenv("TORCHELASTIC_USE_AGENT_STORE");
  return info.source == "torchrun" && agent != nullptr && std::string_view(agent) == "True";
}

distributed::GroupOptions group_options(const TrainConfig& config, const RankInfo& info,
                                        at::Device device) {
  distributed::GroupOptions options;
  options.rank = info.rank;
  options.world = info.world;
  options.host = info.address;
  options.port = info.port;
  options.serves_store = info.rank == 0 && !store_is_served(info);
  if (info.source == "torchrun" && store_is_served(info)) {
    // torchrun's agents store other keys there, and reuse the store when they restart the ranks.
    // TORCHELASTIC_RESTART_COUNT does not identify a start: it differs between the hosts, because
    // an agent does not count the restarts after failures on other hosts.
    options.prefix = "precast";
    options.store_is_reused = true;
  }
  options.device = device;
  options.timeout = std::chrono::seconds(config.dist.timeout_s);
  options.join_timeout = std::chrono::seconds(config.dist.join_timeout_s);
  options.stop = &StopSignals::requested();
  return options;
}

/// Rejects settings that contradict the program that started the ranks.
void check_started_ranks(const TrainConfig& config, const RankInfo& info) {
  if (!config.dist.nproc.empty()) {
    throw ConfigError(fmt::format(
        "dist.nproc: expected no value if {0} has started the {1} ranks, got '{2}'. Have {0} start "
        "one process per GPU, or start precast without {0} and set dist.nproc",
        info.source, info.world, config.dist.nproc));
  }
  const bool address_from_config = info.source == "Open MPI" || info.source == "PMI";
  if (address_from_config && info.local_world < info.world &&
      (info.address == "localhost" || info.address == "127.0.0.1")) {
    throw ConfigError(
        fmt::format("dist.address: expected the host of rank 0, because {} has started ranks on "
                    "several hosts, got '{}'",
                    info.source, info.address));
  }
  if (info.rank == 0 && config.training.distributed && config.dist.world_size != info.world) {
    log_warning("dist.world_size: {} is ignored, because {} has started {} ranks",
                config.dist.world_size, info.source, info.world);
  }
}

/// Runs the checks that depend on the number of ranks, which is known only now.
void check_with_ranks(const TrainConfig& config, int ranks) {
  check_for_ranks(config, ranks, [](const char* key, const std::string& message) {
    throw ConfigError(fmt::format("{}: {}", key, message));
  });
}

/// Rank 0 logs which ranks joined: `=> 16 ranks on 2 hosts (node1: 8, node2: 8), started by Slurm,
/// met at node1:23456`.
void log_ranks(Communicator& ranks, const RankInfo& info) {
  const std::vector<std::string> hosts = ranks.all_gather(host_name().value_or("unknown host"));
  if (ranks.rank() != 0) return;
  std::map<std::string, int> counts;
  for (const std::string& host : hosts) ++counts[host];
  std::string list;
  for (const auto& [host, count] : counts)
    list += fmt::format("{}{}: {}", list.empty() ? "" : ", ", host, count);
  log_info("=> {} ranks on {} host{} ({}), started by {}, met at {}:{}", info.world, counts.size(),
           counts.size() == 1 ? "" : "s", list, info.source, info.address, info.port);
}

[[noreturn]] void end_process(int code) {
  std::fflush(nullptr);
  ::_exit(code);
}

}  // namespace

distributed::VariableUpdate variable_update(const TrainConfig& config) {
  using distributed::VariableUpdate;
  static const std::map<std::string, VariableUpdate> updates = {
      {"replicated", VariableUpdate::replicated},
      {"allreduce_after_backward", VariableUpdate::allreduce_after_backward},
      {"parameter_server", VariableUpdate::parameter_server}};
  return updates.at(config.dist.variable_update);
}

RankInfo resolve_rank_info(const TrainConfig& config, bool trains) {
  RankInfo info = find_rank_info(process_environment(), {.address = config.dist.address,
                                                         .port = parse_port(config.dist.port)});
  if (info.source == "single") return info;
  if (!info.warning.empty() && info.rank == 0) log_warning("{}", info.warning);
  if (info.source != "precast" && info.world > 1) check_started_ranks(config, info);
  if (trains) check_with_ranks(config, info.world);
  return info;
}

int ranks_to_launch(const TrainConfig& config, const RankInfo& info, bool trains,
                    std::optional<int> gpus) {
  const std::string& nproc = config.dist.nproc;
  // A process that another program started as its only task (as in a Slurm step that runs a shell)
  // may start ranks itself.
  if (info.source == "precast" || info.world > 1) return 0;
  if (nproc.empty())
    return config.training.distributed ? static_cast<int>(config.dist.world_size) : 0;
  const int ranks =
      nproc == "auto" ? std::max(1, gpus ? *gpus : usable_gpus()) : parse_nproc(nproc);
  if (trains) check_with_ranks(config, ranks);
  return ranks;
}

std::string gpu_problem(const Recipe& recipe, int ranks, int gpus, bool trains) {
  const TrainConfig& config = recipe.config;
  const char* key = config.dist.nproc.empty() ? "dist.world_size" : "dist.nproc";
  std::string hint = fmt::format("Set {}={}", key, gpus);
  const std::int64_t samples = ranks * config.training.batch_size;
  if (trains && config.training.global_batch_size == 0 && gpus > 0 && samples % gpus == 0) {
    hint += fmt::format(
        ". training.batch_size is the batch of one rank: to keep {} samples per step, set "
        "training.global_batch_size instead, and training.micro_batches if they do not fit in "
        "memory",
        samples);
  }
  return gpu_problem(fmt::format("{}: {}", recipe.origin_of(key).text(), key),
                     config.training.device, ranks, gpus, hint);
}

int launch_ranks(const std::vector<std::string>& args, int ranks) {
  distributed::StoreHost store("127.0.0.1");
  LaunchOptions options;
  options.command = {std::filesystem::read_symlink("/proc/self/exe").string()};
  options.command.insert(options.command.end(), args.begin(), args.end());
  options.processes = ranks;
  options.store_port = store.port();
  options.threads_per_process = std::max(1, usable_cores() / ranks);
  options.on_failure = [&](int /*rank*/, const std::string& cause) { store.claim_failure(cause); };
  return launch(options);
}

RankSession::RankSession(const TrainConfig& config, const RankInfo& info, at::Device device,
                         OnEnd on_end)
    : on_end_(std::move(on_end)) {
  if (info.world == 1) {
    communicator_ = make_single_rank();
    return;
  }
  auto group = std::make_unique<distributed::ProcessGroup>(group_options(config, info, device));
  group_ = group.get();
  communicator_ = std::move(group);
  serves_store_ = group_->options().serves_store;
  log_ranks(*communicator_, info);
  heartbeat_ = std::make_unique<distributed::Heartbeat>(
      group_->options(), [on_end = on_end_](const std::string& cause, bool reported) {
        if (!reported) log_line("error: " + cause);
        if (on_end) on_end(kPeerFailed, cause);
        end_process(kPeerFailed);
      });
}

std::unique_ptr<GradSync> RankSession::make_sync(const TrainConfig& config,
                                                 const std::vector<NamedTensor>& trainable) {
  if (group_ == nullptr) return make_single_rank_sync();
  using distributed::GradCompression;
  const std::map<std::string, GradCompression> compressions = {{"none", GradCompression::none},
                                                               {"fp16", GradCompression::fp16},
                                                               {"bf16", GradCompression::bf16}};
  distributed::GradSyncOptions options;
  options.update = variable_update(config);
  options.compression = compressions.at(config.dist.grad_compression);
  if (config.dist.zero)
    options.owners = distributed::shard_parameters(trainable, communicator_->world());
  return make_grad_sync(*group_, trainable, options);
}

std::vector<NamedTensor> RankSession::owned_parameters(
    const TrainConfig& config, const std::vector<NamedTensor>& trainable) const {
  const bool server = config.dist.variable_update == "parameter_server";
  if (group_ == nullptr || (!server && !config.dist.zero)) return trainable;
  const std::vector<int> owners =
      server ? std::vector<int>(trainable.size(), 0)
             : distributed::shard_parameters(trainable, communicator_->world());
  std::vector<NamedTensor> owned;
  for (std::size_t i = 0; i < trainable.size(); ++i) {
    if (owners[i] == communicator_->rank()) owned.push_back(trainable[i]);
  }
  return owned;
}

bool RankSession::claim_failure(const std::string& cause) {
  return heartbeat_ == nullptr || heartbeat_->claim_failure(cause);
}

int RankSession::run(const std::function<int()>& body) {
  if (heartbeat_ == nullptr) return body();
  int code = 0;
  try {
    code = body();
  } catch (...) {
    end(std::current_exception());
  }
  return code;
}

void RankSession::end(const std::exception_ptr& exception) {
  try {
    rethrow_translated(exception);
  } catch (...) {
    const Failure failure = describe_failure(std::current_exception());
    // When a rank dies, the collectives of all other ranks fail. Only the rank with the original
    // error reports it.
    const bool reported_by_peer =
        failure.exit_code == kPeerFailed && heartbeat_ != nullptr && heartbeat_->wait_for_claim();
    if (!reported_by_peer && claim_failure(failure.text))
      log_line(fmt::format("error: rank {}: {}", communicator_->rank(), failure.text));
    if (on_end_)
      on_end_(failure.exit_code, reported_by_peer ? heartbeat_->claimed_cause() : failure.text);
    // The store disappears with this process. Waiting gives the other ranks time to read from it
    // that the cause has been reported.
    if (serves_store_) std::this_thread::sleep_for(kExitGracePeriod);
    end_process(failure.exit_code);
  }
  end_process(kPeerFailed);
}

}  // namespace precast::tools
