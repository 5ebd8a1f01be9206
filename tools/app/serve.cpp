#include "tools/app/serve.h"

#include <ATen/Context.h>
#include <fmt/format.h>

#include <algorithm>
#include <boost/program_options.hpp>
#include <chrono>
#include <utility>

#include "data/loader/preload.h"
#include "data/ring/layout.h"
#include "tools/app/dataset_check.h"
#include "tools/app/loader_server.h"
#include "tools/app/plan.h"
#include "tools/app/recipe.h"
#include "tools/app/session.h"
#include "tools/app/shared_loading.h"
#include "tools/cli/recipe_arguments.h"
#include "tools/cli/shared_options.h"

namespace precast::tools {
namespace {

namespace po = boost::program_options;

RecipeArguments serve_command() {
  RecipeArguments command(
      "serve",
      "Loads the training batches of a recipe once, for all training runs on this host with "
      "data.train_dataset: ring://NAME. Each run receives the batches that it would load itself. "
      "Ends after the last epoch.",
      RecipeArguments::Positional::recipe_or_dataset);
  Arguments& arguments = command.arguments();
  arguments.options().add_options()("as", po::value<std::string>()->value_name("NAME")->required(),
                                    "name of the ring; 1 to 64 characters of A-Z a-z 0-9 . _ -")(
      "consumers", number(1),
      "number of training runs to wait for; then serving starts, at the earliest batch that any of "
      "them needs")(
      "wait-s", number(0),
      "seconds to wait for the other training runs after the first one has joined; then serving "
      "starts without them; 0: no limit")(
      "slots", number(4), "number of batches by which one training run can be ahead of another")(
      "json", kJsonHelp);
  arguments.example("precast serve recipe.yaml --as data --consumers 2",
                    "for two training runs with --data.train_dataset=ring://data");
  arguments.example("precast serve train.beton --as data --training.batch_size=256");
  arguments.exit_codes({10});
  return command;
}

/// The device is set because the element type of images depends on it. This process does not use
/// the device.
ResolvedRun run_to_serve(const Recipe& recipe) {
  ResolvedRun run = requested_run(recipe);
  if (run.world > 1)
    recipe.refuse("training.distributed",
                  fmt::format("expected one rank, because only the batches of a run with one rank "
                              "can be served, got {}",
                              run.world));
  if (recipe.config.training.device != "cpu" && at::globalContext().hasCUDA())
    run.device = at::kCUDA;
  return run;
}

ServeOptions read_options(const Arguments& arguments) {
  return {
      .name = arguments.text("as"),
      .consumers = static_cast<int>(integer(arguments, "consumers", 1, data::kMaxRingConsumers)),
      .max_wait = std::chrono::seconds(integer(arguments, "wait-s", 0, 1'000'000)),
      // A training run uses up to two batches while it waits for the next one.
      .slots = static_cast<int>(integer(arguments, "slots", 3, data::kMaxRingSlots)),
      .json = arguments.has("json")};
}

}  // namespace

int run_serve(const std::vector<std::string>& args) {
  Registries registries = make_registries();
  RecipeArguments command = serve_command();
  if (!command.parse(args, recipe_help(registries))) return 0;
  const ServeOptions options = read_options(command.arguments());
  const Recipe recipe = load_recipe(command.config_path(), command.overrides(), registries,
                                    RecipeUse::train, UnreadKeys::warning);
  if (!recipe.ring.name.empty() || !recipe.outside.empty())
    recipe.refuse(
        "data.train_dataset",
        fmt::format("expected files, got {}", recipe.outside.empty() ? "a ring" : recipe.outside));
  std::vector<NamedDataset> training = recipe.datasets;
  std::erase_if(training, [](const auto& dataset) { return dataset.key != "data.train_dataset"; });
  check_datasets(training);
  const ResolvedRun run = run_to_serve(recipe);
  const auto reader = open_dataset("data.train_dataset", recipe);
  const TrainData data = make_train_data(*reader, run, registries);
  const TrainPlan plan = make_plan(run, registries, static_cast<std::int64_t>(data.order->size()),
                                   std::max<std::int64_t>(1, recipe.config.model.num_classes));
  if (plan.epochs == 0)
    recipe.refuse("training.epochs", "expected at least one epoch to serve, got 0");
  if (plan.steps_per_epoch == 0)
    recipe.refuse(
        "training.batch_size",
        fmt::format("expected a batch of at most {} samples, the length of an epoch, got {}",
                    data.order->size(), plan.global_batch_size));
  if (recipe.config.data.in_memory == kImagesOnGpu)
    recipe.refuse("data.in_memory", "expected 0, 1 or 2 to serve batches, got gpu");
  if (recipe.config.data.in_memory == 2) data::preload(*reader);
  data::LoaderOptions loader = train_loader_options(*reader, data, run);
  loader.normalize = run.device.is_cpu();
  return serve({.reader = *reader,
                .pipeline = recipe.train_pipeline,
                .loader = std::move(loader),
                .image_size_px = plan.image_size_px,
                .description = loading_text(describe_loading(*reader, data, run, plan))},
               options);
}

}  // namespace precast::tools
