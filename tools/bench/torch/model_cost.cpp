#include "tools/bench/torch/model_cost.h"

#include <ATen/record_function.h>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>

#include "framework/core/error.h"
#include "framework/core/format.h"
#include "tools/app/plan.h"
#include "tools/app/rank_session.h"
#include "tools/bench/cost/step_cost.h"
#include "tools/bench/torch/json_result.h"
#include "tools/bench/torch/step_rig.h"
#include "tools/bench/torch/step_trace.h"

namespace precast::tools {
namespace {

using nlohmann::ordered_json;

/// The work that the recipe gives each GPU in a step.
struct GpuStep {
  std::string precision_name;
  CostPrecision precision = CostPrecision::fp16;
  std::int64_t batch_size = 0;
  int ranks = 1;
};

CostPrecision parse_cost_precision(const std::string& name) {
  if (name == "fp32") return CostPrecision::fp32;
  return name == "bf16" ? CostPrecision::bf16 : CostPrecision::fp16;
}

/// Changes the recipe so that a step can be traced on a CPU. @return the values for the GPU.
GpuStep prepare_for_trace(TrainConfig& config) {
  // On a GPU, `auto` is fp16.
  const std::string& precision = config.training.precision;
  GpuStep step{.precision_name = precision == "auto" ? "fp16" : precision,
               .precision = parse_cost_precision(precision),
               .ranks = std::max(1, ranks_to_launch(config, {}))};
  step.batch_size = rank_batch_size(config, step.ranks);
  // Traces in fp32, because autocast casts different ops on CPUs and on GPUs. The cost model adds
  // the casts of GPUs.
  config.training.precision = "fp32";
  config.training.device = "cpu";
  config.training.cuda_graphs = "off";
  config.training.distributed = false;
  config.training.global_batch_size = 0;
  config.training.batch_size = 2 * config.training.micro_batches;
  config.dist.nproc.clear();
  config.dist.sync_bn = false;
  return step;
}

/// The keys that determine the number of samples of an epoch, together with the dataset's size.
ordered_json samples_of_epoch(const TrainConfig& config) {
  return {{"subset", config.data.subset},
          {"filter", config.data.filter},
          {"repeats", config.data.repeats}};
}

/// The op that divides the gradients by the loss scale. It is not in the trace, which runs in fp32.
TracedOp unscaling(const Model& model) {
  TracedOp op{.name = "_amp_foreach_non_finite_check_and_unscale_", .phase = StepPhase::update};
  for (const NamedTensor& parameter : model.parameters()) {
    if (parameter.tensor.requires_grad())
      op.inputs.push_back({.sizes = parameter.tensor.sizes().vec()});
  }
  op.outputs = op.inputs;
  return op;
}

/// Image sizes and the number of epochs with each, in the order of the plan.
std::vector<std::pair<std::int64_t, int>> sizes_of(const TrainPlan& plan) {
  std::vector<std::pair<std::int64_t, int>> sizes;
  for (const std::int64_t size : plan.image_size_px) {
    const auto known = std::ranges::find(sizes, size, &std::pair<std::int64_t, int>::first);
    if (known == sizes.end()) {
      sizes.emplace_back(size, 1);
    } else {
      ++known->second;
    }
  }
  return sizes;
}

/// Returns the cards of --card. `all` means all cards that can compute in `precision`.
std::vector<const Card*> choose_cards(const std::string& list, CostPrecision precision) {
  std::vector<const Card*> cards = parse_cards("card", list);
  if (precision != CostPrecision::bf16) return cards;
  const auto lacks_bf16 = [](const Card* card) { return !card->has_bf16; };
  if (list == "all") std::erase_if(cards, lacks_bf16);
  const auto wrong = std::ranges::find_if(cards, lacks_bf16);
  if (wrong == cards.end()) return cards;
  throw ConfigError(
      fmt::format("--card: expected cards that compute in bf16, got {}. Leave it out, or set "
                  "training.precision to fp16",
                  (*wrong)->name));
}

void check_layout(const TrainPlan& plan) {
  if (plan.channels_last) return;
  throw ConfigError(
      "training.channels_last: expected true, because --model-cost only covers channels_last "
      "tensors, got false. Leave out --layout nchw or the key");
}

void check_methods(const std::vector<NamedMethod>& methods) {
  const std::vector<std::string> names = varying_methods(methods);
  if (names.empty()) return;
  throw ConfigError(fmt::format(
      "methods: expected the same work in every step, because --model-cost computes the "
      "cost of one step, got {}. Leave them out",
      fmt::join(names, ", ")));
}

/// Published speeds of the same step, and the speeds that the model projects for it.
ordered_json compare_with_published(const TrainPlan& plan, const GpuStep& gpu,
                                    std::int64_t image_size_px, const StepCost& cost) {
  auto compared = ordered_json::array();
  for (const PublishedSpeed& speed : published_speeds()) {
    if (gpu.precision != CostPrecision::fp16 || speed.model != plan.model.arch ||
        speed.blurpool != plan.model.blurpool || speed.image_size_px != image_size_px ||
        speed.batch_size != gpu.batch_size || speed.ranks != gpu.ranks)
      continue;
    const Card& card = *parse_cards("card", std::string(speed.card)).front();
    const double projected =
        static_cast<double>(gpu.batch_size) / step_seconds(card, cost, gpu.precision, gpu.ranks);
    compared.push_back({{"source", speed.source},
                        {"card", speed.card},
                        {"images_per_second", speed.images_per_second},
                        {"projected", projected},
                        {"deviation", projected / speed.images_per_second - 1},
                        {"calibrates", speed.calibrates}});
  }
  return compared;
}

ordered_json describe_size(StepRig& rig, const GpuStep& gpu, std::int64_t image_size_px,
                           const std::vector<const Card*>& cards) {
  FakeShape shape = rig.fake_shape();
  shape.image_size_px = image_size_px;
  const auto step = [&](std::int64_t samples) {
    shape.batch_size = samples;
    Batch batch = [&] {
      const at::DisableRecordFunctionGuard no_recording;
      return make_fake_batch(shape);
    }();
    static_cast<void>(rig.step(std::move(batch)));
  };
  StepTrace trace = trace_step(step, rig.plan().micro_batches, gpu.batch_size);
  if (gpu.precision == CostPrecision::fp16) trace.ops.push_back(unscaling(rig.model()));
  const StepCost reference = reference_cost(trace.ops, gpu.precision);
  const StepCost fused = fused_cost(reference, gpu.precision);
  const double images = static_cast<double>(gpu.batch_size);
  ordered_json json = {{"image_size", image_size_px}};
  const auto describe = [&](const StepCost& cost) {
    return describe_cost(cost, gpu.precision, cards, gpu.ranks, images);
  };
  json["reference"] = describe(reference);
  json["fused"] = describe(fused);
  json["published"] = compare_with_published(rig.plan(), gpu, image_size_px, reference);
  json["ops"] = describe_ops(reference);
  json["uncounted"] = ordered_json::array();
  for (const auto& [name, calls] : trace.uncounted)
    json["uncounted"].push_back({{"op", name}, {"calls", calls}});
  return json;
}

void print_kinds(const ordered_json& cost, const std::vector<const Card*>& cards) {
  fmt::print("{:<22} {:<9} {:>5} {:>10} {:>10} {:>9}", "kind", "phase", "calls", "GFLOP", "MB",
             "launches");
  for (const Card* card : cards) fmt::print(" {:>9}", card->name);
  fmt::print("\n");
  const ordered_json& kinds = cost.at("kinds");
  for (std::size_t i = 0; i < kinds.size(); ++i) {
    const ordered_json& kind = kinds[i];
    fmt::print("{:<22} {:<9} {:>5} {:>10.1f} {:>10.1f} {:>9}", kind.at("kind").get<std::string>(),
               kind.at("phase").get<std::string>(), kind.at("calls").get<int>(),
               kind.at("flops").get<double>() / 1e9, kind.at("bytes").get<double>() / 1e6,
               kind.at("launches").get<int>());
    for (const ordered_json& card : cost.at("cards"))
      fmt::print(" {:>7.1f} %", card.at("shares")[i].get<double>() * 100);
    fmt::print("\n");
  }
  fmt::print("{:<38} {:>10.1f} {:>10.1f} {:>9}", "all", cost.at("flops").get<double>() / 1e9,
             cost.at("bytes").get<double>() / 1e6, cost.at("launches").get<int>());
  for (const ordered_json& card : cost.at("cards"))
    fmt::print(" {:>6.1f} ms", card.at("ms").get<double>());
  fmt::print("\n{:<69}", "images per second per GPU");
  for (const ordered_json& card : cost.at("cards"))
    fmt::print(" {:>9.0f}", card.at("images_per_second").get<double>());
  fmt::print("\n");
}

void print(const ordered_json& report, const std::vector<const Card*>& cards) {
  fmt::print("Projection from a cost model, not a measurement.\n");
  for (const Card* card : cards) {
    if (!is_checked(*card)) {
      fmt::print("{}: not checked against published figures of this card.\n", card->title);
    }
  }
  for (const auto& [name, value] : report.at("settings").items())
    fmt::print("{:<12} {}\n", name, value.is_string() ? value.get<std::string>() : value.dump());
  for (const ordered_json& size : report.at("image_sizes")) {
    for (const char* kernels : {"reference", "fused"}) {
      fmt::print("\n{} px, {} kernels, one step\n", size.at("image_size").get<int>(), kernels);
      print_kinds(size.at(kernels), cards);
    }
    for (const ordered_json& speed : size.at("published")) {
      fmt::print(
          "published: {:.0f} images per second per GPU ({}, {}); projected {:.0f}, {:+.1f} %{}\n",
          speed.at("images_per_second").get<double>(), speed.at("source").get<std::string>(),
          speed.at("card").get<std::string>(), speed.at("projected").get<double>(),
          speed.at("deviation").get<double>() * 100,
          speed.at("calibrates").get<bool>() ? "; the model was calibrated with it" : "");
    }
    for (const ordered_json& op : size.at("uncounted")) {
      fmt::print("not counted: {} ({})\n", op.at("op").get<std::string>(),
                 format_count(op.at("calls").get<std::uint64_t>(), "call"));
    }
  }
}

}  // namespace

int run_model_cost(Recipe& recipe, const Registries& registries, std::int64_t classes,
                   const Arguments& options) {
  const GpuStep gpu = prepare_for_trace(recipe.config);
  const std::vector<const Card*> cards = choose_cards(options.text("card"), gpu.precision);
  const ResolvedRun run = resolve_run(recipe, {});
  RankSession ranks(recipe.config, {}, run.device);
  StepRig rig(run, registries, ranks, classes);
  const TrainPlan& plan = rig.plan();
  check_layout(plan);
  check_methods(recipe.methods);
  auto methods = ordered_json::array();
  for (const NamedMethod& method : recipe.methods) methods.push_back(method.name);
  ordered_json report = {{"projection", true},
                         {"settings",
                          {{"model", plan.model.arch},
                           {"classes", classes},
                           {"blurpool", plan.model.blurpool},
                           {"batch_size", gpu.batch_size},
                           {"ranks", gpu.ranks},
                           {"precision", gpu.precision_name},
                           {"layout", "channels_last"},
                           {"optimizer", plan.optimizer.name},
                           {"methods", methods}}},
                         {"data", samples_of_epoch(recipe.config)},
                         {"image_sizes", ordered_json::array()}};
  for (const auto& [size, epochs] : sizes_of(plan)) {
    ordered_json described = describe_size(rig, gpu, size, cards);
    described["epochs"] = epochs;
    report["image_sizes"].push_back(std::move(described));
  }
  if (!write_json_result(options, report)) print(report, cards);
  return 0;
}

}  // namespace precast::tools
