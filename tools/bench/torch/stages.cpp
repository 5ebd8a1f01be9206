#include <ATen/Parallel.h>
#include <fmt/format.h>

#include <algorithm>
#include <boost/program_options.hpp>
#include <climits>
#include <filesystem>
#include <functional>

#include "framework/core/file.h"
#include "tools/app/plan.h"
#include "tools/app/recipe_outputs.h"
#include "tools/app/session.h"
#include "tools/bench/page_cache.h"
#include "tools/bench/read_pass.h"
#include "tools/bench/torch/commands.h"
#include "tools/bench/torch/step_rig.h"
#include "tools/cli/json_output.h"
#include "tools/cli/median.h"
#include "tools/cli/recipe_arguments.h"
#include "tools/cli/shared_options.h"
#include "tools/cli/stopwatch.h"
#include "tools/doctor/torch/torch_versions.h"
#include "tools/report/chart/bar_chart.h"
#include "tools/report/chart/svg.h"

namespace precast::tools {
namespace {

namespace po = boost::program_options;
using nlohmann::ordered_json;

/// The result of one measurement of a stage.
struct StageResult {
  std::int64_t images = 0;
  std::uint64_t bytes = 0;
  double seconds = 0;
};

/// Runs the stages of training (Leclerc et al., FFCV, CVPR 2023, figure 2) alone and together.
class Stages {
 public:
  Stages(const ResolvedRun& run, const Registries& registries, RankSession& ranks,
         const Arguments& options)
      : run_(run),
        registries_(registries),
        cold_(options.has("cold")),
        batches_(options.get<std::int64_t>("batches")),
        steps_(options.get<std::int64_t>("steps")) {
    const auto reader = open();
    rig_ = std::make_unique<StepRig>(run, registries, ranks,
                                     count_classes(*reader, run.recipe.train_pipeline, run.config(),
                                                   run.config().model.num_classes));
  }

  StageResult read() {
    drop_if_cold();
    const auto& files = run_.config().data.train_dataset;
    const data::BetonReader reader(std::vector<std::filesystem::path>(files.begin(), files.end()));
    const int threads = run_.loader_threads();
    const Stopwatch watch;
    const ReadPass pass = read_all_images(reader, threads);
    return {.images = pass.images, .bytes = pass.bytes, .seconds = watch.seconds()};
  }

  StageResult process() {
    drop_if_cold();
    const auto reader = open();
    const auto source = make_source(*reader);
    StageResult pass;
    const Stopwatch watch;
    source->begin_epoch(request());
    for (std::int64_t batch = 0; batches_ == 0 || batch < batches_; ++batch) {
      const std::optional<Batch> next = source->next();
      if (!next) break;
      pass.images += next->size();
    }
    wait_for_device(run_.device);
    pass.seconds = watch.seconds();
    return pass;
  }

  StageResult train_on_data() {
    drop_if_cold();
    const auto reader = open();
    const auto source = make_source(*reader);
    return train(*make_epochs_stream(*source, request()));
  }

  StageResult train_on_fixed_batch() {
    const auto reader = open();
    const auto source = make_source(*reader);
    source->begin_epoch(request());
    Batch batch = source->next().value();
    for (NamedTensor& field : batch.fields) field.tensor = field.tensor.clone();
    return train(*make_fixed_stream(std::move(batch)));
  }

 private:
  [[nodiscard]] std::unique_ptr<data::BetonReader> open() const {
    return open_dataset("data.train_dataset", run_.recipe);
  }
  /// @throws ConfigError if the samples do not fill a batch.
  [[nodiscard]] std::unique_ptr<BatchSource> make_source(const data::BetonReader& reader) const {
    return make_step_source(reader, run_, registries_, rig_->plan(), /*world=*/1);
  }
  [[nodiscard]] EpochRequest request() const {
    return {.image_size_px = rig_->plan().image_size_px.front()};
  }
  void drop_if_cold() const {
    if (!cold_) return;
    for (const std::string& file : run_.config().data.train_dataset) drop_from_page_cache(file);
  }
  StageResult train(BatchStream& batches) {
    const StepWindow window = time_steps(*rig_, batches, steps_, run_.device);
    return {.images = steps_ * run_.rank_batch_size(), .seconds = window.seconds};
  }

  const ResolvedRun& run_;
  const Registries& registries_;
  bool cold_;
  std::int64_t batches_;
  std::int64_t steps_;
  std::unique_ptr<StepRig> rig_;
};

struct Stage {
  const char* name;
  StageResult (Stages::*run)();
};
constexpr Stage kStages[] = {{"read", &Stages::read},
                             {"read and process", &Stages::process},
                             {"train on the data", &Stages::train_on_data},
                             {"train on one batch", &Stages::train_on_fixed_batch}};

ordered_json stage_row(const Stage& stage, const std::vector<StageResult>& passes) {
  std::vector<double> rates, byte_rates;
  for (const StageResult& pass : passes) {
    rates.push_back(static_cast<double>(pass.images) / pass.seconds);
    byte_rates.push_back(static_cast<double>(pass.bytes) / pass.seconds);
  }
  ordered_json row = {{"stage", stage.name},
                      {"images", passes.front().images},
                      {"images_per_second", median(rates)},
                      {"min", std::ranges::min(rates)},
                      {"max", std::ranges::max(rates)}};
  if (passes.front().bytes > 0) row["bytes_per_second"] = median(byte_rates);
  return row;
}

/// Measures the stages alternately, so that a temporary slowdown of the machine affects all of
/// them.
ordered_json measure(Stages& stages, std::int64_t runs) {
  std::vector<std::vector<StageResult>> passes(std::size(kStages));
  static_cast<void>(stages.train_on_fixed_batch());
  for (std::int64_t run = 0; run < runs; ++run) {
    for (std::size_t i = 0; i < std::size(kStages); ++i)
      passes[i].push_back((stages.*kStages[i].run)());
  }
  auto rows = ordered_json::array();
  for (std::size_t i = 0; i < std::size(kStages); ++i)
    rows.push_back(stage_row(kStages[i], passes[i]));
  const double fixed = rows.back().at("images_per_second").get<double>();
  for (auto& row : rows)
    row["of_training_on_one_batch"] = row.at("images_per_second").get<double>() / fixed;
  return rows;
}

void print_table(const ordered_json& rows) {
  fmt::print("{:<20} {:>8} {:>12}   {:>24}   {:>10}   {:>22}\n", "stage", "images", "img/s",
             "min - max", "MB/s", "vs train on one batch");
  for (const auto& row : rows) {
    fmt::print(
        "{:<20} {:>8} {:>12.1f}   {:>24}   {:>10}   {:>21.2f}x\n",
        row.at("stage").get<std::string>(), row.at("images").get<std::int64_t>(),
        row.at("images_per_second").get<double>(),
        fmt::format("{:.1f} - {:.1f}", row.at("min").get<double>(), row.at("max").get<double>()),
        row.contains("bytes_per_second")
            ? fmt::format("{:.0f}", row.at("bytes_per_second").get<double>() * 1e-6)
            : "",
        row.at("of_training_on_one_batch").get<double>());
  }
}

std::string chart(const ordered_json& figures) {
  std::vector<Bar> bars;
  for (const auto& row : figures.at("stages")) {
    bars.push_back({row.at("stage").get<std::string>(), row.at("images_per_second").get<double>()});
  }
  const auto& settings = figures.at("settings");
  return svg_file(bar_chart_svg(
      {.title = fmt::format("{} at {} px on {}", settings.at("model").get<std::string>(),
                            settings.at("image_size").get<int>(),
                            figures.at("device_name").get<std::string>()),
       .unit = "img/s",
       .bars = bars,
       .scale = Scale::logarithmic}));
}

ordered_json describe(const ordered_json& rows, const ResolvedRun& run,
                      const Registries& registries, const Arguments& options) {
  const TrainPlan plan = make_plan(run, registries, run.global_batch_size(), /*num_classes=*/1);
  return {{"stages", rows},
          {"settings",
           {{"dataset", run.recipe.resolved.at("data.train_dataset")},
            {"model", plan.model.arch},
            {"image_size", plan.image_size_px.front()},
            {"batch_size", run.rank_batch_size()},
            {"device", c10::DeviceTypeName(run.device.type(), /*lower_case=*/true)},
            {"threads", at::get_num_threads()},
            {"cold", options.has("cold")},
            {"steps", options.get<std::int64_t>("steps")},
            {"runs", options.get<std::int64_t>("runs")}}},
          {"device_name", device_name(run.device)},
          {"torch", torch_version()}};
}

void add_stage_options(po::options_description& options) {
  options.add_options()("steps", po::value<std::int64_t>()->default_value(20),
                        "training steps per measurement; each measurement begins with the first "
                        "step of a run")(
      "batches", po::value<std::int64_t>()->default_value(0),
      "batches per measurement; of the stage `read and process`; 0: the whole training set")(
      "runs", po::value<std::int64_t>()->default_value(3), kRunsHelp)(
      "cold",
      "read from disk; the training set is dropped from the page cache before each measurement")(
      "svg", po::value<std::string>()->value_name("FILE"), kSvgHelp)("json", kJsonHelp);
}

void check_stage_options(const Arguments& options) {
  check_range("steps", options.get<std::int64_t>("steps"), 1, INT_MAX);
  check_range("batches", options.get<std::int64_t>("batches"), 0, INT_MAX);
  check_range("runs", options.get<std::int64_t>("runs"), 1, INT_MAX);
}

}  // namespace

int run_bench_stages(const std::vector<std::string>& args) {
  Registries registries = make_registries();
  RecipeArguments command("bench stages",
                          "Finds what slows training down. Measures images per second in four "
                          "stages: only reading a recipe's training set, reading and processing "
                          "it, training on it, and training on one batch repeatedly.");
  command.arguments().example("precast bench stages recipe.yaml --cold --svg stages.svg");
  command.arguments().exit_codes({10, 13});
  add_stage_options(command.arguments().options());
  if (!command.parse(args, recipe_help(registries))) return 0;
  const Arguments& options = command.arguments();
  check_stage_options(options);
  const Recipe recipe = load_recipe(command.config_path(), command.overrides(), registries);
  // Only one rank is measured here; `bench step --ranks` measures several.
  const ResolvedRun run = resolve_run(recipe, RankInfo{});
  RankSession ranks(recipe.config, RankInfo{}, run.device);
  Stages stages(run, registries, ranks, options);
  warn_of_varying_steps(recipe.methods);
  const ordered_json figures =
      describe(measure(stages, options.get<std::int64_t>("runs")), run, registries, options);
  if (options.has("svg")) write_file(options.text("svg"), chart(figures));
  if (options.has("json")) {
    print_json(figures);
  } else {
    print_table(figures.at("stages"));
  }
  return 0;
}

}  // namespace precast::tools
