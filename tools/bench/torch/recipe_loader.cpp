#include <ATen/Context.h>

#include <algorithm>
#include <boost/program_options.hpp>
#include <memory>

#include "framework/core/error.h"
#include "tools/app/plan.h"
#include "tools/app/rank_session.h"
#include "tools/app/recipe.h"
#include "tools/app/session.h"
#include "tools/bench/loader.h"
#include "tools/bench/torch/commands.h"
#include "tools/cli/recipe_arguments.h"
#include "tools/cli/shared_options.h"

namespace precast::tools {
namespace {

namespace po = boost::program_options;

/// Returns the run that `precast train` would start, with its number of ranks and its device. No
/// CUDA context is created, because the measuring processes are forked, and a CUDA context does not
/// survive a fork.
ResolvedRun run_to_load(const Recipe& recipe, int processes) {
  if (recipe.config.data.in_memory == kImagesOnGpu)
    recipe.refuse("data.in_memory", "expected 0, 1 or 2 to measure the CPUs, got gpu");
  ResolvedRun run = requested_run(recipe);
  run.world = std::max(1, ranks_to_launch(recipe.config, {}));
  // The processes share the host's threads and the memory for the JPEG index as local ranks do.
  run.local_world = processes;
  if (recipe.config.training.device != "cpu" && at::globalContext().hasCUDA())
    run.device = at::kCUDA;
  return run;
}

/// The loader of `precast train`. Borrows `run` and `registries`.
RecipeLoading make_recipe_loading(const ResolvedRun& run, const Registries& registries, bool val) {
  return {.open =
              [&run, val] {
                return open_dataset(val ? "data.val_dataset" : "data.train_dataset", run.recipe);
              },
          .options =
              [&run, &registries, val](const data::BetonReader& reader) {
                data::LoaderOptions options =
                    val ? val_loader_options(reader, run)
                        : train_loader_options(reader, make_train_data(reader, run, registries),
                                               run);
                options.normalize = run.device.is_cpu();
                return options;
              },
          .pipeline = val ? run.recipe.val_pipeline : run.recipe.train_pipeline};
}

std::int64_t image_size_of(const ResolvedRun& run, const Registries& registries, bool val) {
  if (val) return run.config().validation.resolution;
  const TrainPlan plan =
      make_plan(run, registries, 0, std::max<std::int64_t>(1, run.config().model.num_classes));
  return plan.image_size_px.empty() ? run.config().resolution.max_res
                                    : *std::ranges::max_element(plan.image_size_px);
}

/// @throws ConfigError if the training set has too few samples for a step, as `precast train` does
void check_batch(const data::BetonReader& reader, const ResolvedRun& run,
                 const Registries& registries) {
  const auto samples =
      static_cast<std::int64_t>(make_train_order(reader, run, registries).order->size());
  const TrainPlan plan = make_plan(run, registries, samples,
                                   std::max<std::int64_t>(1, run.config().model.num_classes));
  if (const std::string why = no_steps_reason(plan, samples, reader.path().string()); !why.empty())
    throw ConfigError(why);
}

/// Returns the recipe's values as a LoaderSetting for the report.
LoaderSetting setting_of(const ResolvedRun& run, const Registries& registries, bool val,
                         const Arguments& options) {
  const TrainConfig& config = run.config();
  LoaderSetting setting;
  setting.processes = static_cast<int>(integer(options, "processes", 1, 1024));
  setting.workers = run.loader_threads();
  setting.batch_size = val ? config.validation.batch_size : run.rank_batch_size();
  const std::int64_t size_px = integer(options, "image-size", 0, 8192);
  setting.image_size_px = size_px > 0 ? size_px : image_size_of(run, registries, val);
  setting.order = val ? "sequential" : config.data.order;
  setting.format = run.device.is_cpu() ? "f32" : "u8";
  setting.in_memory = config.data.in_memory == 0 ? 0 : 1;
  setting.cache_mb = config.data.cache_mb;
  setting.jpeg_index = config.data.jpeg_index_mb == 0 ? "off" : "on";
  return setting;
}

void add_recipe_loader_options(po::options_description& options) {
  add_measuring_options(options);
  options.add_options()(
      "processes", number(1),
      "processes that load the file at the same time; each with the recipe's number of threads")(
      "image-size", number(0),
      "side of the images in px; 0: the largest of training or, with --val, the size of "
      "validation");
}

}  // namespace

int run_bench_recipe_loader(const std::vector<std::string>& args) {
  Registries registries = make_registries();
  RecipeArguments command(
      "bench loader",  // the command that users call
      "Loads the training set of a recipe, or with --val its validation set, as `precast train` "
      "does, and discards the batches, as fast as possible. Each process loads the whole set, in "
      "batches as large as those of one rank.");
  add_recipe_loader_options(command.arguments().options());
  command.arguments().example("precast bench loader recipe.yaml --seconds 5");
  command.arguments().exit_codes({3, 10});
  if (!command.parse(args, recipe_help(registries))) return 0;
  const Arguments& options = command.arguments();
  LoaderRunOptions run_options = read_measuring(options);
  const Recipe recipe = load_recipe(command.config_path(), command.overrides(), registries,
                                    RecipeUse::train, UnreadKeys::warning);
  const ResolvedRun run =
      run_to_load(recipe, static_cast<int>(integer(options, "processes", 1, 1024)));
  const auto loading =
      std::make_shared<const RecipeLoading>(make_recipe_loading(run, registries, run_options.val));
  run_options.recipe = loading;
  const std::vector<std::string>& files =
      run_options.val ? recipe.config.data.val_dataset : recipe.config.data.train_dataset;
  if (run_options.cold && files.size() > 1)
    throw ConfigError("--cold: expected a recipe with one dataset file, got several");
  // Opens the files once, to report a wrong file or batch immediately, and closes them before the
  // processes are forked.
  std::uint64_t samples = 0;
  {
    const auto reader = loading->open();
    samples = reader->size();
    if (!run_options.val) check_batch(*reader, run, registries);
  }
  const LoaderSetting setting = setting_of(run, registries, run_options.val, options);
  return measure_and_report(options, command.config_path(), samples,
                            {{command.config_path(), files.front(), setting, run_options}});
}

}  // namespace precast::tools
