#include <ATen/Parallel.h>
#include <fmt/format.h>

#include <algorithm>
#include <boost/program_options.hpp>
#include <climits>

#include "data/outside/outside_batches.h"
#include "framework/core/error.h"
#include "models/detail/fused_layer_counts.h"
#include "tools/app/kernel_choice.h"
#include "tools/app/outside_loading.h"
#include "tools/app/plan.h"
#include "tools/app/recipe_outputs.h"
#include "tools/app/session.h"
#include "tools/bench/torch/commands.h"
#include "tools/bench/torch/json_result.h"
#include "tools/bench/torch/model_cost.h"
#include "tools/bench/torch/rank_table.h"
#include "tools/bench/torch/step_rig.h"
#include "tools/cli/median.h"
#include "tools/cli/recipe_arguments.h"
#include "tools/cli/shared_options.h"
#include "tools/doctor/torch/torch_versions.h"

namespace precast::tools {
namespace {

namespace po = boost::program_options;
using nlohmann::ordered_json;

constexpr std::int64_t kDefaultClasses = 1000;
constexpr std::int64_t kTracedSteps = 3;

/// Options that set keys of the recipe.
void add_key_options(po::options_description& options) {
  const auto text = [](const char* name) { return po::value<std::string>()->value_name(name); };
  options.add_options()("model", text("NAME"), "architecture; sets model.arch")(
      "blurpool", "antialias strided convolutions; sets training.use_blurpool=1")(
      "image-size", text("N"),
      "side of the images in px; sets resolution.min_res and resolution.max_res")(
      "batch-size", text("N"),
      "samples per batch; sets training.batch_size, and training.global_batch_size=0; default "
      "without a recipe: 64")("precision", text("NAME"),
                              "precision of the computation; fp32, fp16 or bf16")(
      "cuda-graphs", text("NAME"),
      "whether steps are replayed as CUDA graphs; off, auto, on or step")(
      "layout", text("NAME"), "memory layout of the images; nhwc (channels_last) or nchw")(
      "device", text("NAME"), "where to compute; auto, cpu or cuda")(
      "optimizer", text("NAME"), "optimiser; sets training.optimizer")(
      "variable-update", text("NAME"), "how ranks update parameters; sets dist.variable_update");
}

void add_options(po::options_description& options) {
  add_key_options(options);
  options.add_options()(
      "data", po::value<std::string>()->default_value("device"),
      "where batches come from; device: one synthetic batch that stays on the device; cpu: "
      "synthetic, drawn before each step; queue: synthetic, drawn by a second thread; FILE.beton; "
      "zmq://... or ring://NAME: images and labels that another program sends")(
      "steps", po::value<std::int64_t>()->default_value(10),
      "training steps per measurement; each measurement begins with the first step of a run")(
      "warmup", po::value<std::int64_t>()->default_value(5),
      "steps before the measurements; more if a CUDA graph is recorded later")(
      "runs", po::value<std::int64_t>()->default_value(5), kRunsHelp)(
      "threads", po::value<std::int64_t>()->default_value(0),
      "threads per training step on a CPU; 0: an equal share of the usable cores per rank")(
      "ranks", po::value<std::string>()->value_name("LIST"),
      "number of ranks to start on this host; a list such as 1,2,4 prints a table, and --data and "
      "--variable-update may then be lists too")(
      "profile", po::value<std::string>()->value_name("FILE"),
      "write a trace of a few steps; for chrome://tracing or Perfetto")(
      "model-cost",
      "estimate a step with a cost model instead of measuring it; prints FLOPs, bytes and kernel "
      "launches of each kind of op, and the time on --card; needs no GPU")(
      "card", po::value<std::string>()->default_value("all")->value_name("LIST"),
      "cards to compute times for; a100_40gb,a100_80gb,h100,h200,v100 or all")(
      "output,o", po::value<std::string>()->value_name("FILE"),
      "file to write; contains the results as JSON, which are then not printed")("json", kJsonHelp);
}

/// Options and the recipe keys that they set.
constexpr std::pair<const char*, const char*> kOptionKeys[] = {
    {"model", "model.arch"},
    {"batch-size", "training.batch_size"},
    {"precision", "training.precision"},
    {"device", "training.device"},
    {"cuda-graphs", "training.cuda_graphs"},
    {"optimizer", "training.optimizer"},
    {"image-size", "resolution.min_res"},
    {"image-size", "resolution.max_res"}};

/// @throws ConfigError
bool is_channels_last(const std::string& layout) {
  if (layout != "nhwc" && layout != "channels_last" && layout != "nchw")
    throw ConfigError(fmt::format("--layout: expected nhwc or nchw, got '{}'", layout));
  return layout != "nchw";
}

bool is_file(const std::string& data) {
  return data.ends_with(".beton") && !data::is_producer_address(data);
}

/// Returns the recipe keys that the options set. @param column the values of --data and
/// --variable-update.
std::vector<Override> option_overrides(const Arguments& options, const RankColumn& column,
                                       bool has_recipe) {
  const Origin origin{kCommandLine, 0, 0};
  Diagnostics diagnostics;
  std::vector<Override> overrides;
  const auto set = [&](const std::string& key, const std::string& value) {
    overrides.push_back({key, parse_override(value, origin, diagnostics)});
  };
  // This default has no origin on the command line, so a training.global_batch_size that overrides
  // it is not reported as a mistake.
  if (!has_recipe)
    overrides.push_back({"training.batch_size", parse_override("64", {}, diagnostics)});
  if (options.has("batch-size")) set("training.global_batch_size", "0");
  for (const auto& [option, key] : kOptionKeys) {
    if (options.has(option)) set(key, options.text(option));
  }
  if (options.has("variable-update")) set("dist.variable_update", column.update);
  if (options.has("blurpool")) set("training.use_blurpool", "1");
  if (options.has("layout"))
    set("training.channels_last", is_channels_last(options.text("layout")) ? "true" : "false");
  if (is_file(column.data)) set("data.train_dataset", column.data);
  diagnostics.throw_if_errors();
  return overrides;
}

/// The values of --data and --variable-update, which are lists only with --ranks.
std::vector<RankColumn> measured_columns(const Arguments& options) {
  if (options.has("ranks")) return read_columns(options);
  RankColumn single{.data = options.text("data"), .update = {}};
  if (options.has("variable-update")) single.update = options.text("variable-update");
  return {single};
}

void check_options(const Arguments& options) {
  check_range("steps", options.get<std::int64_t>("steps"), 1, INT_MAX);
  check_range("warmup", options.get<std::int64_t>("warmup"), 0, INT_MAX);
  check_range("runs", options.get<std::int64_t>("runs"), 1, INT_MAX);
  check_range("threads", options.get<std::int64_t>("threads"), 0, 4096);
  if (!options.has("model-cost")) {
    if (options.given("card"))
      throw ConfigError(fmt::format("--card: expected --model-cost as well, got only --card {}",
                                    options.text("card")));
    return;
  }
  for (const char* measures : {"data", "steps", "warmup", "runs", "threads", "device",
                               "cuda-graphs", "ranks", "profile"}) {
    if (options.given(measures)) {
      throw ConfigError(
          fmt::format("--{}: expected none with --model-cost, which measures nothing, got '{}'",
                      measures, options.texts().at(measures)));
    }
  }
}

/// One rank's measurement.
class StepBench {
 public:
  StepBench(const ResolvedRun& run, const Registries& registries, RankSession& ranks,
            const Arguments& options)
      : run_(run), ranks_(ranks), options_(options) {
    const TrainConfig& config = run.config();
    std::int64_t classes = config.model.num_classes;
    const std::string from = options.text("data");
    if (is_file(from)) {
      reader_ = open_dataset("data.train_dataset", run.recipe);
      classes = count_classes(*reader_, run.recipe.train_pipeline, config, classes);
    }
    if (classes == 0) classes = kDefaultClasses;
    rig_ = std::make_unique<StepRig>(run, registries, ranks, classes);
    if (is_file(from)) {
      open_source(registries);
    } else if (data::is_producer_address(from)) {
      source_ = make_outside_stream(from, run_, rig_->plan());
      batches_ = make_epochs_stream(
          *source_, {.epoch = 0, .image_size_px = rig_->plan().image_size_px.front()});
    } else {
      batches_ = make_fake_stream(from, rig_->fake_shape());
    }
  }

  int run() {
    const auto steps = options_.get<std::int64_t>("steps");
    if (ranks_.is_rank_zero()) warn_of_varying_steps(run_.recipe.methods);
    // The first step allocates memory and, on GPUs, selects kernels. A later step records the CUDA
    // graph that the following steps replay.
    static_cast<void>(time_steps(*rig_, *batches_, warm_up_steps(), run_.device));
    std::vector<StepWindow> windows;
    for (std::int64_t i = 0; i < options_.get<std::int64_t>("runs"); ++i) {
      static_cast<void>(ranks_.communicator().all_gather("start"));
      windows.push_back(time_steps(*rig_, *batches_, steps, run_.device));
    }
    if (options_.has("profile")) trace();
    if (ranks_.is_rank_zero()) {
      const ordered_json figures = describe(windows, steps);
      if (!write_json_result(options_, figures)) print(figures);
    }
    static_cast<void>(ranks_.communicator().all_gather("done"));
    return 0;
  }

 private:
  [[nodiscard]] std::int64_t warm_up_steps() const {
    return std::max(options_.get<std::int64_t>("warmup"), rig_->steps_to_first_replay());
  }

  void open_source(const Registries& registries) {
    const Communicator& all = ranks_.communicator();
    source_ = make_step_source(*reader_, run_, registries, rig_->plan(), all.world());
    batches_ = make_epochs_stream(*source_, {.epoch = 0,
                                             .image_size_px = rig_->plan().image_size_px.front(),
                                             .rank = all.rank(),
                                             .world = all.world()});
  }

  void trace() {
    if (ranks_.is_rank_zero()) {
      write_step_trace(*rig_, *batches_, kTracedSteps, run_.device, options_.text("profile"));
    } else {
      static_cast<void>(time_steps(*rig_, *batches_, kTracedSteps, run_.device));
    }
  }

  [[nodiscard]] ordered_json describe(const std::vector<StepWindow>& windows,
                                      std::int64_t steps) const {
    const double own_images = static_cast<double>(steps * run_.rank_batch_size());
    const double all_images = own_images * ranks_.communicator().world();
    auto described = ordered_json::array();
    std::vector<double> rates, cpu_rates;
    std::int64_t replayed_passes = 0;
    for (const StepWindow& window : windows) {
      rates.push_back(all_images / window.seconds);
      cpu_rates.push_back(own_images / window.cpu_seconds);
      described.push_back({{"seconds", window.seconds},
                           {"cpu_seconds", window.cpu_seconds},
                           {"images_per_second", rates.back()},
                           {"loss", window.loss},
                           {"replayed_passes", window.replayed_passes}});
      replayed_passes += window.replayed_passes;
    }
    return {{"images_per_second", median(rates)}, {"min", std::ranges::min(rates)},
            {"max", std::ranges::max(rates)},     {"images_per_cpu_second", median(cpu_rates)},
            {"loss", windows.back().loss},        {"replayed_passes", replayed_passes},
            {"settings", settings(steps)},        {"device_name", device_name(run_.device)},
            {"torch", torch_version()},           {"windows", described}};
  }

  [[nodiscard]] ordered_json settings(std::int64_t steps) const {
    const TrainPlan& plan = rig_->plan();
    auto methods = ordered_json::array();
    for (const NamedMethod& method : run_.recipe.methods) methods.push_back(method.name);
    return {{"model", plan.model.arch},
            {"classes", plan.model.num_classes},
            {"blurpool", plan.model.blurpool},
            {"image_size", plan.image_size_px.front()},
            {"batch_size", run_.rank_batch_size()},
            {"ranks", ranks_.communicator().world()},
            {"precision", precision_name(plan.precision)},
            {"layout", plan.channels_last ? "channels_last" : "nchw"},
            {"kernels",
             kernels_used(describe_kernels(run_, plan, models::fused_layer_counts(rig_->model())))},
            {"cuda_graphs", run_.config().training.cuda_graphs},
            {"device", c10::DeviceTypeName(run_.device.type(), /*lower_case=*/true)},
            {"threads", at::get_num_threads()},
            {"data", options_.text("data")},
            {"optimizer", plan.optimizer.name},
            {"variable_update", run_.config().dist.variable_update},
            {"methods", methods},
            {"steps", steps},
            {"warmup", warm_up_steps()},
            {"windows", options_.get<std::int64_t>("runs")}};
  }

  static void print(const ordered_json& figures) {
    for (const auto& [name, value] : figures.at("settings").items())
      fmt::print("{:<16} {}\n", name, value.is_string() ? value.get<std::string>() : value.dump());
    fmt::print("{:<16} {}, torch {}\n", "device name", figures.at("device_name").get<std::string>(),
               figures.at("torch").get<std::string>());
    fmt::print("{:<16} {}\n\n", "replayed passes",
               figures.at("replayed_passes").get<std::int64_t>());
    fmt::print("{:>7}   {:>9}   {:>9}\n", "window", "seconds", "img/s");
    int number = 0;
    for (const auto& window : figures.at("windows")) {
      fmt::print("{:>7}   {:>9.3f}   {:>9.1f}\n", ++number, window.at("seconds").get<double>(),
                 window.at("images_per_second").get<double>());
    }
    fmt::print("median {:>12}   {:>9.1f}   ({:.1f} img/CPU-s)\n", "",
               figures.at("images_per_second").get<double>(),
               figures.at("images_per_cpu_second").get<double>());
  }

  const ResolvedRun& run_;
  RankSession& ranks_;
  const Arguments& options_;
  std::unique_ptr<data::BetonReader> reader_;
  std::unique_ptr<StepRig> rig_;
  std::unique_ptr<BatchSource> source_;
  std::unique_ptr<BatchStream> batches_;
};

}  // namespace

int run_bench_step(const std::vector<std::string>& args) {
  Registries registries = make_registries();
  RecipeArguments command("bench step",
                          "Measures training steps on synthetic or real data, on one rank or "
                          "many.");
  command.arguments().example("precast bench step --model resnet18 --image-size 160");
  command.arguments().example("precast bench step recipe.yaml --ranks 1,2,4 --device cuda");
  command.arguments().example("precast bench step --model resnet50 --model-cost --card h200");
  command.arguments().exit_codes({10, 13});
  add_options(command.arguments().options());
  if (!command.parse(args, recipe_help(registries))) return 0;
  const Arguments& options = command.arguments();
  check_options(options);
  const std::vector<RankColumn> columns = measured_columns(options);
  // With --ranks, each launch loads the recipe itself; here only its device is used.
  std::vector<Override> overrides =
      option_overrides(options, columns.front(), !command.config_path().empty());
  overrides.insert(overrides.end(), command.overrides().begin(), command.overrides().end());
  Recipe recipe = load_recipe(command.config_path(), overrides, registries);
  if (options.has("ranks"))
    return run_rank_table(args, options, columns, recipe.config.training.device);
  if (options.has("model-cost")) {
    const std::int64_t classes = recipe.config.model.num_classes;
    return run_model_cost(recipe, registries, classes == 0 ? kDefaultClasses : classes, options);
  }
  const RankInfo info = resolve_rank_info(recipe.config);
  if (const int ranks = ranks_to_launch(recipe.config, info); ranks > 0) {
    check_gpus(gpu_problem(recipe, ranks, usable_gpus()));
    std::vector<std::string> own = {"bench", "step"};
    own.insert(own.end(), args.begin(), args.end());
    return launch_ranks(own, ranks);
  }
  const ResolvedRun run = resolve_run(recipe, info);
  if (const auto threads = options.get<std::int64_t>("threads"); threads > 0)
    at::set_num_threads(static_cast<int>(threads));
  RankSession ranks(recipe.config, info, run.device);
  return ranks.run([&] { return StepBench(run, registries, ranks, options).run(); });
}

}  // namespace precast::tools
