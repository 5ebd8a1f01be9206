#include "tools/train.h"

#include <fmt/core.h>

#include <boost/program_options.hpp>

#include "framework/core/error.h"
#include "framework/core/log.h"
#include "framework/core/progress.h"
#include "framework/engine/run_folder.h"
#include "framework/engine/trainer.h"
#include "framework/engine/weights.h"
#include "tools/eval.h"
#include "tools/recipe_arguments.h"
#include "tools/session.h"

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

/// Shows the plan without training. The number of samples comes from `train_samples`, or from the
/// dataset where the recipe names one; without either the plan has no steps.
int dry_run(Recipe& recipe, const Registries& registries, std::int64_t train_samples, bool json,
            bool per_step) {
  std::int64_t classes = recipe.config.model.num_classes;
  if (train_samples == 0 && !recipe.config.data.train_dataset.empty()) {
    const auto reader = open_dataset("data.train_dataset", recipe.config.data.train_dataset);
    train_samples = static_cast<std::int64_t>(reader->size());
    classes = count_classes(*reader, recipe.config, classes);
  }
  if (classes == 0) classes = ModelSpec{}.num_classes;
  // A plan for a GPU can be looked at where there is none.
  if (recipe.config.training.device != "cuda") static_cast<void>(prepare_device(recipe.config));
  const TrainPlan plan = make_plan(recipe, registries, train_samples, classes);
  const ordered_json described = describe_plan(recipe, plan, per_step);
  if (json) {
    fmt::print("{}\n", described.dump(2));
  } else {
    print_plan(described);
  }
  return 0;
}

/// What training needs beyond a valid recipe, checked before a dataset is opened.
void check_trainable(const TrainConfig& config) {
  const Origin recipe{"recipe", 0, 0};
  Diagnostics diagnostics;
  const auto check_dataset = [&](std::string_view key, const std::string& path) {
    if (path.empty()) diagnostics.error(recipe, key, "missing. Expected the path of a .beton file");
  };
  check_dataset("data.train_dataset", config.data.train_dataset);
  check_dataset("data.val_dataset", config.data.val_dataset);
  if (config.world() > 1) {
    diagnostics.error(recipe, "dist.world_size",
                      fmt::format("expected 1, since this version trains on one device, got {}. "
                                  "Pass --dist.world_size=1; a step then has "
                                  "training.batch_size ({}) samples",
                                  config.world(), config.training.batch_size));
  }
  diagnostics.throw_if_errors();
}

/// A training run: owns everything from the datasets to the run folder.
class TrainRun {
 public:
  TrainRun(Recipe& recipe, const Registries& registries)
      : recipe_(recipe),
        train_reader_(open_dataset("data.train_dataset", recipe.config.data.train_dataset)),
        val_reader_(open_dataset("data.val_dataset", recipe.config.data.val_dataset)),
        device_(prepare_device(recipe.config)),
        plan_(checked_plan(registries)),
        model_(build_model(recipe, plan_, registries, device_)),
        loss_(registries.losses.create(plan_.loss, plan_.loss_options)),
        optimizer_(registries.optimizers.create(plan_.optimizer, model_->parameters(),
                                                plan_.optimizer_options)),
        train_source_(make_train_source(*train_reader_, recipe, plan_, device_)),
        val_source_(make_val_source(*val_reader_, recipe, plan_, device_)),
        folder_(recipe.config.logging.folder, recipe.config.logging.run_id, plan_.model.arch) {}

  int run(bool json) {
    folder_.write_params(recipe_.resolved);
    engine::JsonLinesLog log(folder_ / "log");
    announce();
    const engine::Evaluator evaluator = make_evaluator(recipe_, plan_, device_);
    engine::Trainer trainer(plan_,
                            {.model = *model_,
                             .loss = *loss_,
                             .optimizer = *optimizer_,
                             .methods = recipe_.methods,
                             .train_source = *train_source_,
                             .val_source = *val_source_,
                             .evaluator = evaluator,
                             .sinks = {&log}},
                            {.device = device_,
                             .evaluate_each_epoch = recipe_.config.logging.log_level > 0,
                             .log_every = recipe_.config.logging.every});
    const engine::TrainSummary summary = trainer.run();
    trainer.in_eval_scope([&] { engine::save_model_weights(*model_, folder_ / "final_weights"); });
    report(summary, json);
    return 0;
  }

 private:
  TrainPlan checked_plan(const Registries& registries) const {
    const TrainConfig& config = recipe_.config;
    const std::int64_t classes = count_classes(*train_reader_, config, config.model.num_classes);
    static_cast<void>(count_classes(*val_reader_, config, classes));
    TrainPlan plan =
        make_plan(recipe_, registries, static_cast<std::int64_t>(train_reader_->size()), classes);
    if (plan.steps_per_epoch == 0) {
      throw ConfigError(fmt::format(
          "training.batch_size: expected at most the {} samples of {}, got {}",
          train_reader_->size(), train_reader_->path().string(), plan.global_batch_size));
    }
    return plan;
  }

  void announce() const {
    log_info("=> {} on {}: {} training and {} validation images, {} classes", plan_.model.arch,
             device_.str(), train_reader_->size(), val_reader_->size(), plan_.model.num_classes);
    log_info("=> {} epochs of {} steps, batch {}, run folder {}", plan_.epochs,
             plan_.steps_per_epoch, plan_.global_batch_size, folder_.path().string());
  }

  void report(const engine::TrainSummary& summary, bool json) const {
    const double rate = summary.train_seconds > 0
                            ? static_cast<double>(summary.images_trained) / summary.train_seconds
                            : 0;
    const ordered_json figures = {
        {"run_folder", folder_.path().string()},       {"top_1", summary.final_eval.top_1()},
        {"top_5", summary.final_eval.top_5()},         {"val_loss", summary.final_eval.loss},
        {"val_images", summary.final_eval.samples},    {"train_loss", summary.train_loss},
        {"train_minutes", summary.train_seconds / 60}, {"eval_minutes", summary.eval_seconds / 60},
        {"wait_minutes", summary.wait_seconds / 60},   {"images_per_second", rate}};
    write_file(folder_ / "summary.json", figures.dump(2) + "\n");
    if (json) {
      fmt::print("{}\n", figures.dump(2));
      return;
    }
    const double share =
        summary.train_seconds > 0 ? 100 * summary.wait_seconds / summary.train_seconds : 0;
    fmt::print("\ntop-1 {:.4f}   top-5 {:.4f}   ({} images{})\n", summary.final_eval.top_1(),
               summary.final_eval.top_5(), summary.final_eval.samples,
               recipe_.config.validation.lr_tta != 0 ? ", flip TTA" : "");
    fmt::print("training   {:>8}   {:.0f} img/s, {:.1f} % of it waiting for data\n",
               format_duration(summary.train_seconds), rate, share);
    fmt::print("evaluation {:>8}\n", format_duration(summary.eval_seconds));
    fmt::print(
        "run folder {}: final_weights.safetensors, final_weights.pt, log, params.json, "
        "summary.json\n",
        folder_.path().string());
  }

  Recipe& recipe_;
  std::unique_ptr<data::BetonReader> train_reader_;
  std::unique_ptr<data::BetonReader> val_reader_;
  at::Device device_;
  TrainPlan plan_;
  std::unique_ptr<Model> model_;
  std::unique_ptr<Loss> loss_;
  std::unique_ptr<Optimizer> optimizer_;
  std::unique_ptr<BatchSource> train_source_;
  std::unique_ptr<BatchSource> val_source_;
  /// Last: a run that cannot start leaves no folder.
  engine::RunFolder folder_;
};

}  // namespace

int run_train(const std::vector<std::string>& args) {
  const Registries registries = make_registries();
  RecipeArguments command(
      "train",
      "Trains a model through a recipe and leaves a run folder with its weights and its log.");
  command.arguments().options().add_options()("dry-run",
                                              "check the recipe and show the plan, train nothing")(
      "train_samples", po::value<std::int64_t>()->default_value(0),
      "with --dry-run: samples of a training set that is not there")(
      "per-step", "with --dry-run --json: the learning rate of every step")(
      "json", "print results as JSON");
  if (!command.parse(args, recipe_help(registries))) return 0;
  const Arguments& options = command.arguments();
  Recipe recipe = load_recipe(command.config_path(), command.overrides(), registries);
  const auto train_samples = options.get<std::int64_t>("train_samples");
  if (train_samples < 0)
    throw ConfigError(fmt::format("--train_samples: expected at least 0, got {}", train_samples));
  if (options.has("dry-run")) {
    return dry_run(recipe, registries, train_samples, options.has("json"), options.has("per-step"));
  }
  if (recipe.config.training.eval_only != 0) {
    return evaluate_recipe(recipe, registries, options.has("json"));
  }
  check_trainable(recipe.config);
  return TrainRun(recipe, registries).run(options.has("json"));
}

}  // namespace precast::tools
