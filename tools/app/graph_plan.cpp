#include "tools/app/graph_plan.h"

#include <fmt/format.h>

#include <map>

#include "tools/app/rank_session.h"

namespace precast::tools {
namespace {

using engine::GraphMode;
using engine::GraphScope;
using nlohmann::ordered_json;

bool takes_lr_tensor(const TrainPlan& plan, const Registries& registries) {
  // Every optimiser can be created without parameters, because a rank may have none to update.
  const std::vector<NamedTensor> none;
  return registries.optimizers.make(plan.optimizer, {none, plan.peak_lr})->takes_lr_tensor();
}

engine::GraphChoice planned_choice(const ResolvedRun& run, const TrainPlan& plan,
                                   const Registries& registries) {
  const GraphMode mode = graph_mode(run.config());
  return engine::choose_graph(
      {.mode = mode,
       .precision = plan.precision,
       .device = run.device,
       .world = static_cast<int>(run.world),
       .takes_lr_tensor = mode == GraphMode::step && takes_lr_tensor(plan, registries),
       .methods = run.recipe.methods,
       .sync_obstacle = run.world == 1
                            ? ""
                            : distributed::graph_obstacle(variable_update(run.config()), run.device,
                                                          distributed::Transport::by_device)});
}

constexpr const char* kScopes[] = {"none", "passes", "step"};

}  // namespace

GraphMode graph_mode(const TrainConfig& config) {
  static const std::map<std::string, GraphMode> modes = {{"off", GraphMode::off},
                                                         {"auto", GraphMode::automatic},
                                                         {"on", GraphMode::on},
                                                         {"step", GraphMode::step}};
  return modes.at(config.training.cuda_graphs);
}

ordered_json describe_graphs(const ResolvedRun& run, const TrainPlan& plan,
                             const Registries& registries) {
  const engine::GraphChoice choice = planned_choice(run, plan, registries);
  return {{"setting", run.config().training.cuda_graphs},
          {"records", kScopes[static_cast<int>(choice.scope)]},
          {"obstacles", choice.obstacles}};
}

std::string graphs_text(const ordered_json& graphs) {
  const std::string setting = graphs.at("setting"), records = graphs.at("records");
  if (setting == "off") return setting;
  engine::GraphChoice choice;
  if (records != "none") choice.scope = records == "step" ? GraphScope::step : GraphScope::passes;
  graphs.at("obstacles").get_to(choice.obstacles);
  return fmt::format("{}: {}{}", setting, graph_text(choice),
                     setting == "auto" && records != "none" ? " of small batches" : "");
}

}  // namespace precast::tools
