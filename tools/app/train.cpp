#include "tools/app/train.h"

#include <fmt/core.h>

#include <boost/program_options.hpp>
#include <exception>
#include <fstream>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <vector>

#include "framework/core/error.h"
#include "framework/core/log.h"
#include "framework/launch/rank_info.h"
#include "framework/process/stop_signals.h"
#include "tools/app/dataset_check.h"
#include "tools/app/dry_run.h"
#include "tools/app/eval.h"
#include "tools/app/images_on_gpu.h"
#include "tools/app/outside_loading.h"
#include "tools/app/rank_session.h"
#include "tools/app/recipe.h"
#include "tools/app/resolved_run.h"
#include "tools/app/result_file.h"
#include "tools/app/shared_loading.h"
#include "tools/app/train_run.h"
#include "tools/cli/command.h"
#include "tools/cli/recipe_arguments.h"
#include "tools/cli/shared_options.h"

namespace precast::tools {
namespace {

namespace po = boost::program_options;
using nlohmann::ordered_json;

/// Runs this rank, which may be the only one.
int run_rank(const Recipe& recipe, const Registries& registries, const RankInfo& info,
             const Arguments& options, ResultFile& result) {
  // Signals are handled from here on, because they must not kill the run while the ranks meet, the
  // GPU is prepared or the datasets are loaded.
  const StopSignals signals(StopSignals::kTraining);
  ResolvedRun run = resolve_run(recipe, info);
  if (options.has("ring")) use_ring(options.text("ring"), run);
  check_images_have_gpu(run);
  RankSession ranks(recipe.config, info, run.device,
                    [&](int code, const std::string& error) { result.write_failure(code, error); });
  return ranks.run([&] {
    TrainRun training(run, registries, ranks);
    result.add({{"run_folder", training.folder().string()}});
    const int code = training.run(options.has("json"));
    if (code == 0 && info.rank == 0)
      result.add(ordered_json::parse(std::ifstream(training.folder() / "summary.json")));
    return code;
  });
}

/// Rejects options that only a dry run reads.
void check_dry_run_options(const Arguments& options) {
  if (options.has("dry-run")) return;
  for (const char* name : {"train-samples", "per-step"}) {
    if (options.given(name)) {
      throw ConfigError(
          fmt::format("--{0}: expected --dry-run with --{0}, got a training run", name));
    }
  }
}

/// Rejects a --train-samples that is negative or contradicts the recipe.
void check_train_samples(const Recipe& recipe, std::int64_t train_samples) {
  if (train_samples < 0)
    throw ConfigError(fmt::format("--train-samples: expected at least 0, got {}", train_samples));
  if (train_samples == 0 || !recipe.trains()) return;
  const auto& data = recipe.config.data;
  if (!recipe.outside.empty())
    recipe.refuse("data.train_dataset",
                  fmt::format("expected files with --train-samples, got {}. "
                              "data.batches_per_epoch sets the length of an epoch",
                              recipe.outside));
  for (const auto& [key, value] :
       {std::pair("data.subset", &data.subset), std::pair("data.filter", &data.filter)}) {
    if (!value->empty())
      recipe.refuse(key, fmt::format("expected none with --train-samples, which reads no dataset, "
                                     "got '{}'. Leave it out, and give the number of samples that "
                                     "it selects",
                                     *value));
  }
}

int train(RecipeArguments& command, const std::vector<std::string>& args, Registries& registries,
          ResultFile& result) {
  const Arguments& options = command.arguments();
  check_dry_run_options(options);
  const Recipe recipe =
      load_recipe(command.config_path(), command.overrides(), registries, RecipeUse::train,
                  options.has("warn-unread") ? UnreadKeys::warning : UnreadKeys::error);
  result.add({{"params", recipe.resolved}});
  const RankInfo info = resolve_rank_info(recipe.config, recipe.trains());
  const auto train_samples = options.get<std::int64_t>("train-samples");
  check_train_samples(recipe, train_samples);
  if (options.has("ring") && !recipe.trains())
    recipe.refuse("training.eval_only",
                  "expected false with --ring, which gives batches for training, got true");
  if (options.has("dry-run")) return dry_run(recipe, registries, info, train_samples, options);
  std::vector<std::string> arguments = {"train"};
  arguments.insert(arguments.end(), args.begin(), args.end());
  if (!recipe.trains()) {
    const int code =
        evaluate_recipe(recipe, registries, arguments, options.has("json"), {}, &result);
    result.take_over();  // has no effect unless this process has started the ranks
    return code;
  }
  check_datasets(recipe.datasets);
  if (const int ranks = ranks_to_launch(recipe.config, info); ranks > 0) {
    if (!recipe.outside.empty()) check_outside_ranks(recipe, recipe.outside, ranks);
    check_gpus(gpu_problem(recipe, ranks, usable_gpus()));
    const int code = launch_ranks(arguments, ranks);
    result.take_over();
    return code;
  }
  if (info.world == 1) {
    for (const auto& [key, origin, reason] : recipe.unread_by_one_rank)
      log_warning("{}: {}: {}", origin.text(), key, reason);
  }
  return run_rank(recipe, registries, info, options, result);
}

/// Whether this process is a rank other than rank 0. Only rank 0 writes the result file. Invalid
/// environment variables of a launcher are reported later.
bool is_other_rank() {
  try {
    return find_rank_info(process_environment()).rank != 0;
  } catch (const ConfigError&) {
    return false;
  }
}

RecipeArguments train_command() {
  RecipeArguments command("train",
                          "Trains a model from a recipe. The weights, the log and everything that "
                          "is needed to continue are written to a run folder.");
  Arguments& arguments = command.arguments();
  arguments.options().add_options()("dry-run", kDryRunHelp)(
      "train-samples", po::value<std::int64_t>()->default_value(0),
      "number of training samples to assume, without reading the dataset; 0: read the dataset; "
      "data.repeats multiplies the number; only with --dry-run")(
      "ring", po::value<std::string>()->value_name("NAME"),
      "ring of `precast serve` from which training batches are taken; batches that the ring does "
      "not have are loaded by this process, with equal results")(
      "per-step", "show the learning rate of every step; only with --dry-run --json")(
      "warn-unread",
      "warn about keys that have no effect; without this option they are errors, except "
      "ffcv-imagenet's keys and those that only several ranks read, which only cause warnings")(
      "json", kJsonHelp)(
      "result-json", po::value<std::string>()->value_name("FILE"),
      "write results, exit code and the keys of the recipe to a JSON file; at the end, also after "
      "an error");
  arguments.example("precast train recipe.yaml --training.epochs=16 --data.num_workers=8");
  arguments.example("precast train recipe.yaml --dry-run", "checks the recipe, shows the plan");
  arguments.exit_codes({10, 12, 13, 14, 85});
  return command;
}

/// RecipeArguments::parse(), which also writes an error to the result file.
bool parse_command(RecipeArguments& command, const std::vector<std::string>& args,
                   const Registries& registries) {
  try {
    return command.parse(args, recipe_help(registries));
  } catch (...) {
    const Failure failure = describe_failure(std::current_exception());
    try {
      ResultFile result(is_other_rank() ? "" : find_result_path(args));
      result.write_failure(failure.exit_code, failure.text);
    } catch (const std::exception& error) {
      log_warning("{}", error.what());
    }
    throw;
  }
}

}  // namespace

int run_train(const std::vector<std::string>& args) {
  Registries registries = make_registries();
  RecipeArguments command = train_command();
  if (!parse_command(command, args, registries)) return 0;
  const Arguments& options = command.arguments();
  const bool writes = options.has("result-json") && !is_other_rank();
  ResultFile result(writes ? options.text("result-json") : "");
  return result.run_and_write([&] { return train(command, args, registries, result); });
}

}  // namespace precast::tools
