#include "framework/engine/graph_choice.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <utility>

#include "framework/core/error.h"
#include "framework/core/log.h"
#include "framework/engine/graph_recorder.h"
#include "framework/engine/step_graph.h"
#include "framework/engine/step_parts.h"

namespace precast::engine {
namespace {

constexpr std::int64_t kSmallBatch = 96;
constexpr std::int64_t kSmallBatchSizePx = 160;
/// The number of image sizes whose recordings are kept. The recordings share one pool of memory.
constexpr std::size_t kKeptSteps = 8;
/// With several ranks, the number of steps that run before a step is recorded. PyTorch's
/// documentation requires this number with NCCL, because NCCL connects the ranks during the first
/// steps.
constexpr int kWarmUpsOfRanks = 11;

/// The reasons why a recording cannot contain the whole step.
std::vector<std::string> obstacles_of(const GraphFacts& facts) {
  std::vector<std::string> obstacles;
  for (const NamedMethod& method : facts.methods) {
    if (method.method->step_strategy() != nullptr) {
      obstacles.push_back(fmt::format("{} replaces the forward and backward passes", method.name));
    } else if (!method.method->records_hooks(facts.world)) {
      obstacles.push_back(fmt::format(
          "{} may run code on the CPU between the backward pass and the update", method.name));
    }
  }
  if (!facts.takes_lr_tensor)
    obstacles.emplace_back("the optimiser takes the learning rate only as a number");
  if (!facts.sync_obstacle.empty()) obstacles.push_back(facts.sync_obstacle);
  return obstacles;
}

bool records_passes(const GraphFacts& facts) {
  if (facts.mode == GraphMode::off || !facts.device.is_cuda() || facts.world > 1) return false;
  return facts.mode != GraphMode::automatic || facts.precision != Precision::fp32;
}

}  // namespace

GraphChoice choose_graph(const GraphFacts& facts) {
  GraphChoice choice{records_passes(facts) ? GraphScope::passes : GraphScope::none, {}};
  if (facts.mode != GraphMode::step) return choice;
  choice.obstacles = obstacles_of(facts);
  if (!facts.device.is_cuda()) choice.obstacles.emplace_back("the run is on a CPU");
  if (choice.obstacles.empty()) choice.scope = GraphScope::step;
  return choice;
}

std::string graph_text(const GraphChoice& choice) {
  if (choice.scope == GraphScope::step) return "the whole step";
  const bool passes = choice.scope == GraphScope::passes;
  const std::string what = passes ? "the forward and backward passes" : "nothing";
  if (choice.obstacles.empty()) return what;
  return fmt::format("{}{}: {}", what, passes ? ", not the whole step" : "",
                     fmt::join(choice.obstacles, "; "));
}

bool worth_recording(GraphMode mode, std::int64_t samples, std::int64_t size_px) {
  if (mode != GraphMode::automatic) return mode != GraphMode::off;
  return samples * size_px * size_px < kSmallBatch * kSmallBatchSizePx * kSmallBatchSizePx;
}

std::unique_ptr<StepGraph> make_step_graph(GraphMode mode, const TrainPlan& plan, at::Device device,
                                           const StepParts& parts) {
  const GraphChoice choice = choose_graph({.mode = mode,
                                           .precision = plan.precision,
                                           .device = device,
                                           .world = parts.ranks.world(),
                                           .takes_lr_tensor = parts.optimizer.takes_lr_tensor(),
                                           .methods = parts.methods,
                                           .sync_obstacle = parts.sync.graph_obstacle()});
  if (!choice.obstacles.empty() && parts.ranks.rank() == 0)
    log_warning("training.cuda_graphs: step records {}", graph_text(choice));
  if (choice.scope == GraphScope::none) return nullptr;
  std::unique_ptr<GraphRecorder> recorder = make_graph_recorder(device);
  if (recorder == nullptr && mode == GraphMode::automatic) return nullptr;
  if (recorder == nullptr) {
    throw DeviceError(
        "training.cuda_graphs: expected a build with CUDA, got a build without CUDA. Build with "
        "-DPRECAST_CUDA=ON where nvcc is installed, or give --training.cuda_graphs=off");
  }
  std::vector<at::Tensor> parameters;
  for (const NamedTensor& parameter : parts.model.parameters())
    parameters.push_back(parameter.tensor);
  StepGraphOptions options{.scope = choice.scope, .several_ranks = parts.ranks.world() > 1};
  if (choice.scope == GraphScope::step) options.kept = kKeptSteps;
  if (options.several_ranks) options.warm_ups = kWarmUpsOfRanks;
  return std::make_unique<StepGraph>(mode, std::move(recorder), std::move(parameters), options);
}

}  // namespace precast::engine
