#include "tools/app/plan.h"

#include <fmt/core.h>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>

#include "framework/core/config/value.h"
#include "framework/core/error.h"
#include "framework/core/format.h"
#include "recipes/losses/bce.h"
#include "tools/app/data_description.h"
#include "tools/app/frozen_parameters.h"
#include "tools/app/graph_plan.h"
#include "tools/app/kernel_choice.h"
#include "tools/app/session.h"
#include "tools/app/task.h"

namespace precast::tools {
namespace {

using nlohmann::ordered_json;

Precision parse_precision(const std::string& name, bool on_gpu) {
  if (name == "fp16" || (name == "auto" && on_gpu)) return Precision::fp16;
  return name == "bf16" ? Precision::bf16 : Precision::fp32;
}

std::string format_epochs(std::int64_t epochs) {
  return format_count(static_cast<std::uint64_t>(std::max<std::int64_t>(0, epochs)), "epoch");
}

/// @throws ConfigError if batch norms cannot split their batches as ghost_batch_norm requires.
void check_ghost_batches(const ResolvedRun& run, const TrainPlan& plan) {
  const std::int64_t size = plan.model.ghost_batch_size;
  if (size == 0) return;
  if (run.config().dist.sync_bn && run.world > 1) {
    throw ConfigError(
        fmt::format("method ghost_batch_norm: expected dist.sync_bn: false, got true with {} "
                    "ranks. The method computes batch statistics over parts of a rank's batch, "
                    "dist.sync_bn over the batches of all ranks",
                    run.world));
  }
  const std::int64_t samples = plan.global_batch_size / run.world / plan.micro_batches;
  if (samples < size) {
    throw ConfigError(fmt::format(
        "method ghost_batch_norm: expected size <= {} (samples of a micro-batch on one rank, from "
        "training.batch_size, training.micro_batches and the number of ranks), got {}",
        samples, size));
  }
}

/// @throws ConfigError if the loss bce turns all targets into the same number.
void check_target_threshold(const TrainPlan& plan) {
  if (plan.loss.name != "bce" || plan.model.num_classes < 2) return;
  recipes::BceOptions bce;
  const auto read = [&](std::string_view name, double* value) {
    const ConfigNode* const given = plan.loss.options.find(name);
    if (given != nullptr) read_value(*given, value);
  };
  read("target_threshold", &bce.target_threshold);
  read("label_smoothing", &bce.label_smoothing);
  const double threshold = bce.target_threshold, smoothing = bce.label_smoothing;
  const auto [on, off] = bce.smoothed(plan.model.num_classes);
  // The loss compares float32 values.
  const auto single = [](double value) { return static_cast<float>(value); };
  if (threshold < 0 || (single(threshold) >= single(off) && single(threshold) < single(on))) return;
  throw ConfigError(
      fmt::format("loss bce: expected target_threshold below 0, or at least {0:.6g} and below "
                  "{1:.6g}, got {2}. With {3} classes and label smoothing {4} "
                  "(training.label_smoothing), targets are {0:.6g} and {1:.6g}; this threshold "
                  "turns both into {5}",
                  off, on, threshold, plan.model.num_classes, smoothing,
                  single(threshold) < single(off) ? 1 : 0));
}

/// Calls `visit(rate, call)` with the rates at the start and the end of each epoch and, if the
/// number of steps is known, those of the first and the last step of each epoch. `call()` returns
/// the text of the call that computed the rate, such as `lr(3)`, for messages.
template <typename Visit>
void visit_rates(const TrainPlan& plan, const Visit& visit) {
  for (std::int64_t epoch = 0; epoch <= plan.epochs; ++epoch)
    visit(plan.schedule->lr(epoch), [&] { return fmt::format("lr({})", epoch); });
  if (plan.steps_per_epoch == 0) return;
  for (std::int64_t epoch = 0; epoch < plan.epochs; ++epoch) {
    for (const std::int64_t step : {std::int64_t{0}, plan.steps_per_epoch - 1}) {
      visit(plan.lr(epoch, step),
            [&] { return fmt::format("step_lr({}, {}, {})", epoch, step, plan.steps_per_epoch); });
    }
  }
}

/// @throws ConfigError if one of the rates of visit_rates() is not finite or is negative.
void check_rates(const std::string& schedule, const TrainPlan& plan) {
  visit_rates(plan, [&](double rate, const auto& call) {
    if (std::isfinite(rate) && rate >= 0) return;
    throw ConfigError(fmt::format(
        "schedule {}: expected finite rates of at least 0, got {} from {} in a run of {}", schedule,
        rate, call(), format_epochs(plan.epochs)));
  });
}

constexpr double kRounding = 1 + 1e-9;

/// The highest of the peak rate and the rates of visit_rates().
double highest_rate(const TrainPlan& plan) {
  double highest = plan.peak_lr;
  if (plan.epochs == 0) return highest;
  visit_rates(plan, [&](double rate, const auto& /*call*/) {
    if (rate > highest * kRounding) highest = rate;
  });
  return highest;
}

/// @throws ConfigError if the method changed a field that methods must not change
void check_unchanged_fields(const std::string& method, const TrainPlan& before,
                            const TrainPlan& plan) {
  const auto expect_unchanged = [&](std::string_view field, auto expected, auto got) {
    if (got == expected) return;
    throw ConfigError(
        fmt::format("method {}: expected configure() to keep the plan's {} ({}), got {}. Methods "
                    "must not change it, because other parts read it from the recipe",
                    method, field, expected, got));
  };
  expect_unchanged("seed", before.seed, plan.seed);
  expect_unchanged("steps_per_epoch", before.steps_per_epoch, plan.steps_per_epoch);
  expect_unchanged("global_batch_size", before.global_batch_size, plan.global_batch_size);
  expect_unchanged("repeats", before.repeats, plan.repeats);
  expect_unchanged("peak_lr", before.peak_lr, plan.peak_lr);
  expect_unchanged("model.num_classes", before.model.num_classes, plan.model.num_classes);
  expect_unchanged("model.in_channels", before.model.in_channels, plan.model.in_channels);
  expect_unchanged("model.targets", name_of(before.model.targets), name_of(plan.model.targets));
}

/// Lets a method edit the plan.
/// @param rank_batch samples of a step on one rank; 0: nothing is trained.
/// @throws ConfigError if the edited plan is invalid
void configure(const NamedMethod& method, TrainPlan& plan, std::int64_t rank_batch) {
  const TrainPlan before = plan;
  method.method->configure(plan);
  check_unchanged_fields(method.name, before, plan);
  const auto expect = [&](bool holds, std::string_view field, const std::string& expected,
                          auto got) {
    if (holds) return;
    throw ConfigError(fmt::format("method {}: expected {} after configure() to be {}, got {}",
                                  method.name, field, expected, got));
  };
  expect(plan.schedule != nullptr, "schedule", "a schedule", "null");
  expect(plan.micro_batches >= 1, "micro_batches", "at least 1", plan.micro_batches);
  // The number in the recipe is checked elsewhere, with its key.
  expect(plan.micro_batches == before.micro_batches || rank_batch % plan.micro_batches == 0,
         "micro_batches", fmt::format("a divisor of the batch of one rank ({})", rank_batch),
         plan.micro_batches);
  const auto entries = static_cast<std::int64_t>(plan.image_size_px.size());
  expect(entries == plan.epochs, "image_size_px",
         fmt::format("one entry for each of {}", format_epochs(plan.epochs)), entries);
  for (const std::int64_t size_px : plan.image_size_px)
    expect(size_px >= 1, "image_size_px", "sizes of at least 1", size_px);
}

/// Formats an order, such as `random, subset 64, filter label < 3`.
std::string order_text(const ordered_json& order) {
  std::string text = order.at("name");
  for (const char* option : {"subset", "filter"}) {
    const std::string value = order.at(option);
    if (!value.empty()) text += fmt::format(", {} {}", option, value);
  }
  return order.at("repeats") == 1 ? text
                                  : fmt::format("{}, {} times", text, order.at("repeats").dump());
}

std::string count_text(const ordered_json& number, std::string_view one) {
  return format_count(number.get<std::uint64_t>(), one);
}

void print_model(const ResolvedRun& run, const ordered_json& plan) {
  const auto& model = plan.at("model");
  const auto ghost_batch_size = model.at("ghost_batch_size").get<std::int64_t>();
  fmt::print(
      "model       {}{}{}, {}\n", model.at("arch").get<std::string>(),
      model.at("blurpool").get<bool>() ? " with BlurPool" : "",
      ghost_batch_size == 0 ? "" : fmt::format(", ghost batches of {} samples", ghost_batch_size),
      outputs_text(run.recipe.targets, model.at("num_classes").get<std::int64_t>()));
}

void print_precision(const ordered_json& plan) {
  fmt::print("precision   {}{}\n", plan.at("precision").get<std::string>(),
             plan.at("channels_last").get<bool>() ? ", channels_last" : "");
}

void print_methods(const ordered_json& plan) {
  fmt::print("methods     in this order:\n");
  for (const auto& method : plan.at("methods")) {
    for (const auto& [name, options] : method.items())
      fmt::print("            {} {}\n", name, options.dump());
  }
}

void print_pipelines(const ordered_json& plan) {
  for (const auto& [split, pipeline] : plan.at("pipeline").items())
    print_pipeline("pipeline." + split, pipeline);
}

void print_data(const ordered_json& plan) {
  for (const auto& [name, dataset] : plan.at("datasets").items()) print_dataset(name, dataset);
  if (plan.contains("producer"))
    fmt::print("{:<12}{}\n", "train", plan.at("producer").get<std::string>());
  else
    fmt::print("{:<12}{}\n", "order", order_text(plan.at("order")));
  print_pipelines(plan);
}

}  // namespace

std::string precision_name(Precision precision) {
  constexpr const char* kNames[] = {"fp32", "fp16", "bf16"};
  return kNames[static_cast<int>(precision)];
}

TrainPlan make_plan(const ResolvedRun& run, const Registries& registries, std::int64_t samples,
                    std::int64_t num_classes, RecipeUse use) {
  const Recipe& recipe = run.recipe;
  const TrainConfig& config = recipe.config;
  TrainPlan plan;
  plan.model = {.arch = config.model.arch,
                .num_classes = num_classes,
                .in_channels = config.model.in_channels,
                .targets = recipe.targets,
                .blurpool = false,
                .fused_kernels = uses_fused_kernels(run),
                .params = config.model.params};
  plan.seed = static_cast<std::uint64_t>(config.training.seed);
  plan.epochs = config.training.epochs;
  plan.global_batch_size = run.global_batch_size();
  plan.micro_batches = config.training.micro_batches;
  plan.steps_per_epoch = samples / plan.global_batch_size;
  if (recipe.outside.empty()) plan.repeats = config.data.repeats;
  plan.image_size_px.assign(static_cast<std::size_t>(plan.epochs), config.resolution.min_res);
  plan.peak_lr = run.peak_lr();
  plan.schedule = registries.schedules.make(
      recipe.schedule, {.lr = plan.peak_lr, .epochs = std::max<std::int64_t>(1, plan.epochs)});
  plan.loss = recipe.loss;
  plan.optimizer = recipe.optimizer;
  plan.precision = parse_precision(config.training.precision, run.device.is_cuda());
  const bool trains = use == RecipeUse::train && !config.training.eval_only;
  const std::int64_t rank_batch = trains ? run.rank_batch_size() : 0;
  for (const NamedMethod& method : recipe.methods) configure(method, plan, rank_batch);
  if (trains) {
    check_rates(recipe.schedule.name, plan);
    check_ghost_batches(run, plan);
    check_target_threshold(plan);
  }
  return plan;
}

std::string no_steps_reason(const TrainPlan& plan, std::int64_t samples,
                            const std::string& dataset) {
  if (samples == 0 || plan.steps_per_epoch > 0) return {};
  return fmt::format(
      "training.batch_size: expected a global batch of at most {} samples, the length of an epoch "
      "of {}, got {}",
      samples, dataset, plan.global_batch_size);
}

void warn_of_short_run(const Recipe& recipe, const TrainPlan& plan, Diagnostics& diagnostics) {
  if (plan.image_size_px.empty()) return;  // no epochs
  const std::int64_t epochs = recipe.config.training.epochs;
  const auto warn = [&](std::string_view key, std::int64_t epoch, std::string_view consequence) {
    const std::string scaled =
        plan.epochs == epochs ? "" : fmt::format(", which methods change to {}", plan.epochs);
    // The default of the key may not fit the given number of epochs.
    const std::string_view given = recipe.origins.contains(key) ? key : "training.epochs";
    diagnostics.warning(recipe.origin_of(given), key,
                        fmt::format("expected less than training.epochs ({}{}), got {}: {}", epochs,
                                    scaled, epoch, consequence));
  };
  if (recipe.config.lr.lr_schedule_type == "cyclic") {
    const auto peak = recipe.resolved.at("lr.lr_peak_epoch").get<std::int64_t>();
    if (peak >= plan.epochs)
      warn("lr.lr_peak_epoch", peak, "the learning rate does not reach lr.lr");
  }
  // Only the options of the selected schedule are keys.
  const auto warmup = recipe.resolved.find("lr.warmup_epochs");
  if (warmup != recipe.resolved.end() && warmup->is_number_integer() && *warmup >= plan.epochs) {
    warn("lr.warmup_epochs", warmup->get<std::int64_t>(),
         "the learning rate only rises, and does not reach lr.lr");
  }
  const auto& resolution = recipe.config.resolution;
  const std::int64_t largest_px = *std::ranges::max_element(plan.image_size_px);
  // Methods may shorten the run, but they then scale the image sizes to its length.
  if (resolution.end_ramp >= epochs && largest_px < resolution.max_res) {
    warn("resolution.end_ramp", resolution.end_ramp,
         fmt::format("images grow to {} px, not to resolution.max_res ({})", largest_px,
                     resolution.max_res));
  }
}

void warn_of_high_rates(const Recipe& recipe, const TrainPlan& plan, Diagnostics& diagnostics) {
  if (plan.epochs == 0) return;
  const double highest = highest_rate(plan);
  if (highest <= plan.peak_lr) return;
  diagnostics.warning(
      recipe.origin_of("lr.lr"), "lr.lr",
      fmt::format("expected the highest learning rate, got {:.6g}, but lr.lr_schedule_type: {} "
                  "rises to {:.6g}",
                  plan.peak_lr, recipe.schedule.name, highest));
}

ordered_json describe_plan(const ResolvedRun& run, const TrainPlan& plan,
                           const ordered_json& values, bool per_step) {
  const Recipe& recipe = run.recipe;
  auto epochs = ordered_json::array();
  for (std::int64_t epoch = 0; epoch < plan.epochs; ++epoch) {
    ordered_json entry = {{"epoch", epoch},
                          {"resolution", plan.image_size_px.at(static_cast<std::size_t>(epoch))},
                          {"lr_begin", plan.schedule->lr(epoch)},
                          {"lr_end", plan.schedule->lr(epoch + 1)}};
    if (per_step) {
      auto rates = ordered_json::array();
      for (std::int64_t step = 0; step < plan.steps_per_epoch; ++step)
        rates.push_back(plan.lr(epoch, step));
      entry["lr_per_step"] = rates;
    }
    epochs.push_back(entry);
  }
  return {{"model",
           {{"arch", plan.model.arch},
            {"num_classes", plan.model.num_classes},
            {"in_channels", plan.model.in_channels},
            {"targets", name_of(plan.model.targets)},
            {"blurpool", plan.model.blurpool},
            {"ghost_batch_size", plan.model.ghost_batch_size},
            {"params", plan.model.params.flow()}}},
          {"epochs", plan.epochs},
          {"steps_per_epoch", plan.steps_per_epoch},
          {"global_batch_size", plan.global_batch_size},
          {"world_size", run.world},
          {"precision", precision_name(plan.precision)},
          {"channels_last", plan.channels_last},
          {"loss", {{"name", plan.loss.name}, {"options", plan.loss.options.flow()}}},
          {"best_metric",
           {{"name", recipe.best.name}, {"higher_is_better", recipe.best.higher_is_better}}},
          {"optimizer", plan.optimizer.name},
          {"lr",
           {{"schedule", recipe.config.lr.lr_schedule_type},
            {"peak", run.peak_lr()},
            {"highest", highest_rate(plan)},
            {"reference_batch_size", recipe.config.lr.reference_batch_size}}},
          {"methods", recipe.resolved.at("methods")},
          {"plan", epochs},
          {"config", values}};
}

void print_plan(const ResolvedRun& run, const ordered_json& plan) {
  print_model(run, plan);
  fmt::print("batch       {} per step over {}, {} per epoch\n",
             count_text(plan.at("global_batch_size"), "sample"),
             count_text(plan.at("world_size"), "rank"),
             count_text(plan.at("steps_per_epoch"), "step"));
  print_precision(plan);
  fmt::print("kernels     {}\n", kernels_text(plan.at("kernels")));
  fmt::print("graphs      {}\n", graphs_text(plan.at("graphs")));
  if (const auto frozen = plan.at("frozen").get<std::vector<std::string>>(); !frozen.empty())
    fmt::print("frozen      {}\n", frozen_text(frozen));
  const auto& lr = plan.at("lr");
  const bool scaled = lr.at("reference_batch_size") != 0 && lr.at("highest") == lr.at("peak");
  fmt::print("optimiser   {}, lr {}, at most {:.6g}{}\n", plan.at("optimizer").get<std::string>(),
             lr.at("schedule").get<std::string>(), lr.at("highest").get<double>(),
             scaled ? fmt::format(" (lr.lr scaled from a batch of {})",
                                  lr.at("reference_batch_size").dump())
                    : "");
  print_data(plan);
  print_methods(plan);
  const bool images = !plan.at("pipeline").empty();
  fmt::print("epoch{}   lr at its start   at its end\n", images ? "   resolution" : "");
  for (const auto& epoch : plan.at("plan")) {
    const std::string resolution =
        images ? fmt::format("   {:>7} px", epoch.at("resolution").get<int>()) : "";
    fmt::print("{:>5}{}   {:>15.6g}   {:>10.6g}\n", epoch.at("epoch").get<int>() + 1, resolution,
               epoch.at("lr_begin").get<double>(), epoch.at("lr_end").get<double>());
  }
}

void print_evaluation(const ResolvedRun& run, const ordered_json& plan) {
  const Recipe& recipe = run.recipe;
  const auto& validation = recipe.config.validation;
  print_model(run, plan);
  fmt::print("weights     {}\n", recipe.config.model.weights);
  fmt::print("batch       {} per rank, on {}\n",
             format_count(static_cast<std::uint64_t>(validation.batch_size), "sample"),
             count_text(plan.at("world_size"), "rank"));
  const ordered_json& datasets = plan.at("datasets");
  if (!datasets.contains("val") || datasets.at("val").contains("image_px")) {
    fmt::print("images      {} px{}\n", validation.resolution,
               mirrors_images(recipe) ? ", with flip TTA" : "");
  }
  print_precision(plan);
  std::vector<std::string> figures = {"val_loss"};
  if (recipe.targets == TargetKind::class_index) figures.insert(figures.end(), {"top_1", "top_5"});
  for (const auto& metric : recipe.metrics) figures.push_back(metric->name());
  fmt::print("metrics     {}\n", fmt::join(figures, ", "));
  for (const auto& [name, dataset] : datasets.items()) print_dataset(name, dataset);
  print_pipelines(plan);
  print_methods(plan);
}

}  // namespace precast::tools
