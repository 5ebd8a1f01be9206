#include "tools/app/train.h"

#include <fmt/core.h>

#include <boost/program_options.hpp>
#include <fstream>

#include "framework/core/error.h"
#include "framework/core/log.h"
#include "tools/app/eval.h"
#include "tools/app/plan.h"
#include "tools/app/rank_session.h"
#include "tools/app/result_file.h"
#include "tools/app/session.h"
#include "tools/app/train_run.h"
#include "tools/cli/json_output.h"
#include "tools/cli/recipe_arguments.h"

namespace precast::tools {
namespace {

namespace po = boost::program_options;
using nlohmann::ordered_json;

void print_plan(const ordered_json& plan) {
  const auto& model = plan.at("model");
  fmt::print("model       {}{}, {} classes\n", model.at("arch").get<std::string>(),
             model.at("blurpool").get<bool>() ? " with BlurPool" : "",
             model.at("num_classes").dump());
  fmt::print("batch       {} samples a step over {} rank(s), {} steps an epoch\n",
             plan.at("global_batch_size").dump(), plan.at("world_size").dump(),
             plan.at("steps_per_epoch").dump());
  fmt::print("precision   {}{}\n", plan.at("precision").get<std::string>(),
             plan.at("channels_last").get<bool>() ? ", channels_last" : "");
  const auto& lr = plan.at("lr");
  fmt::print("optimiser   {}, lr {}, at most {:.6g}{}\n", plan.at("optimizer").get<std::string>(),
             lr.at("schedule").get<std::string>(), lr.at("peak").get<double>(),
             lr.at("reference_batch_size") == 0
                 ? ""
                 : fmt::format(" (lr.lr scaled from a batch of {})",
                               lr.at("reference_batch_size").dump()));
  fmt::print("methods     in this order:\n");
  for (const auto& method : plan.at("methods")) {
    for (const auto& [name, options] : method.items())
      fmt::print("            {} {}\n", name, options.dump());
  }
  fmt::print("epoch   resolution   lr at its start   at its end\n");
  for (const auto& epoch : plan.at("plan")) {
    fmt::print("{:>5}   {:>7} px   {:>15.6g}   {:>10.6g}\n", epoch.at("epoch").get<int>(),
               epoch.at("resolution").get<int>(), epoch.at("lr_begin").get<double>(),
               epoch.at("lr_end").get<double>());
  }
}

/// The run that would be started. The plan for a GPU can be printed on a machine without one.
ResolvedRun planned_run(const Recipe& recipe, const RankInfo& info) {
  ResolvedRun run = as_requested(recipe);
  if (!run.device.is_cuda()) run.device = prepare_device(recipe.config, RankInfo{});
  if (info.source != "single") run.world = info.world;
  return run;
}

/// Prints the plan without training. The number of samples comes from `train_samples`, or from the
/// dataset if the recipe names one; without either the plan has no steps.
int dry_run(const ResolvedRun& run, const Registries& registries, std::int64_t train_samples,
            bool json, bool per_step) {
  const TrainConfig& config = run.config();
  std::int64_t classes = config.model.num_classes;
  ordered_json values = run.recipe.resolved;
  if (train_samples == 0 && !config.data.train_dataset.empty()) {
    const auto reader = open_dataset("data.train_dataset", config.data.train_dataset, config);
    const TrainData data = make_train_order(*reader, run, registries);
    train_samples = static_cast<std::int64_t>(data.order->size());
    values = resolved_values(run.recipe, *reader, data);
    classes = count_classes(*reader, config, classes);
  }
  if (classes == 0) classes = ModelSpec{}.num_classes;
  const TrainPlan plan = make_plan(run, registries, train_samples, classes);
  const ordered_json described = describe_plan(run, plan, values, per_step);
  if (json) {
    print_json(described);
  } else {
    print_plan(described);
  }
  return 0;
}

/// Requirements of training beyond a valid recipe, checked before a dataset is opened.
void check_trainable(const TrainConfig& config) {
  const Origin recipe{"recipe", 0, 0};
  Diagnostics diagnostics;
  const auto check_dataset = [&](std::string_view key, const std::string& path) {
    if (path.empty()) diagnostics.error(recipe, key, "missing. Expected the path of a .beton file");
  };
  check_dataset("data.train_dataset", config.data.train_dataset);
  check_dataset("data.val_dataset", config.data.val_dataset);
  diagnostics.throw_if_errors();
}

/// One rank, or a run without ranks.
int run_rank(const Recipe& recipe, const Registries& registries, const RankInfo& info, bool json,
             ResultFile& result) {
  const ResolvedRun run = resolve_run(recipe, info);
  RankSession ranks(recipe.config, info, run.device);
  return ranks.run([&] {
    TrainRun training(run, registries, ranks);
    result.add({{"run_folder", training.folder().string()}});
    const int code = training.run(json);
    if (code == 0 && info.rank == 0)
      result.add(ordered_json::parse(std::ifstream(training.folder() / "summary.json")));
    return code;
  });
}

int train(RecipeArguments& command, const std::vector<std::string>& args, Registries& registries,
          ResultFile& result) {
  const Arguments& options = command.arguments();
  const Recipe recipe =
      load_recipe(command.config_path(), command.overrides(), registries, RecipeUse::train,
                  options.has("warn-unread") ? UnreadKeys::warning : UnreadKeys::error);
  const RankInfo info = find_ranks(recipe.config);
  if (info.rank != 0) result.leave_to_others();
  const auto train_samples = options.get<std::int64_t>("train_samples");
  if (train_samples < 0)
    throw ConfigError(fmt::format("--train_samples: expected at least 0, got {}", train_samples));
  if (options.has("dry-run")) {
    return dry_run(planned_run(recipe, info), registries, train_samples, options.has("json"),
                   options.has("per-step"));
  }
  if (recipe.config.training.eval_only) {
    return evaluate_recipe(recipe, registries, options.has("json"));
  }
  check_trainable(recipe.config);
  if (const int ranks = ranks_to_launch(recipe.config, info); ranks > 0) {
    std::vector<std::string> arguments = {"train"};
    arguments.insert(arguments.end(), args.begin(), args.end());
    const int code = launch_ranks(arguments, ranks);
    // Rank 0 has written it, unless it was killed.
    if (result.is_there()) result.leave_to_others();
    return code;
  }
  if (info.world == 1) {
    for (const std::string& warning : recipe.unread_by_one_rank) log_warning("{}", warning);
  }
  result.add({{"params", recipe.resolved}});
  return run_rank(recipe, registries, info, options.has("json"), result);
}

}  // namespace

int run_train(const std::vector<std::string>& args) {
  Registries registries = make_registries();
  RecipeArguments command(
      "train",
      "Trains a model through a recipe and leaves a run folder with its weights and its log.");
  command.arguments().options().add_options()("dry-run",
                                              "check the recipe and show the plan, train nothing")(
      "train_samples", po::value<std::int64_t>()->default_value(0),
      "with --dry-run: samples of a training set that is not there")(
      "per-step", "with --dry-run --json: the learning rate of every step")(
      "warn-unread", "a key that nothing reads is a warning, as for the axes of a sweep")(
      "json", "print results as JSON")(
      "result-json", po::value<std::string>(),
      "write figures, exit code and every key to this file at the end, however it ends");
  if (!command.parse(args, recipe_help(registries))) return 0;
  const Arguments& options = command.arguments();
  ResultFile result(options.has("result-json") ? options.text("result-json") : "");
  return result.write_after([&] { return train(command, args, registries, result); });
}

}  // namespace precast::tools
