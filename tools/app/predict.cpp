#include "tools/app/predict.h"

#include <fmt/core.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <boost/program_options.hpp>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <optional>
#include <span>

#include "data/beton/sums.h"
#include "framework/core/archive/weights_spec.h"
#include "framework/core/dump_json.h"
#include "framework/core/error.h"
#include "framework/core/file.h"
#include "framework/core/format.h"
#include "framework/core/log.h"
#include "framework/core/progress.h"
#include "framework/engine/stop_request.h"
#include "framework/process/stop_signals.h"
#include "tools/app/eval_session.h"
#include "tools/app/output_choice.h"
#include "tools/app/photo_inputs.h"
#include "tools/app/prediction_writer.h"
#include "tools/app/recipe_outputs.h"
#include "tools/app/run_argument.h"
#include "tools/app/run_identity.h"
#include "tools/app/session.h"
#include "tools/app/weights_check.h"
#include "tools/cli/recipe_arguments.h"

namespace precast::tools {
namespace {

namespace po = boost::program_options;

constexpr std::int64_t kMaxPredictions = 1'000'000;
/// Maximum number of files that a message names.
constexpr std::size_t kFilesShown = 3;

constexpr const char* kAbout =
    "Writes the classes that a model predicts, with their probabilities, for image files, folders "
    "of images, or the samples of a dataset. A recipe needs model.weights: --model.weights=FILE.\n"
    "For single-label losses, probabilities are the softmax of the logits; with multi-label "
    "losses, each class has its own probability, the sigmoid of its logit. Outputs that are not "
    "classes are written unchanged.\n"
    "With validation.lr_tta, logits are the sums over the image and its mirror image, and "
    "probabilities are computed from their mean.\n"
    "CSV output contains logits instead of classes for a dataset or a multi-label loss unless "
    "--top is given; a .npy file always contains logits.\n"
    "A file that is not an image is skipped with a warning; the exit code is then 3.";

/// The inputs of the command line: image files and folders, or one dataset.
struct Inputs {
  std::vector<std::string> photos;
  /// Empty: data.val_dataset.
  std::string dataset;
};

Inputs read_inputs(RecipeArguments& command) {
  Inputs inputs;
  if (!command.arguments().has("INPUT")) return inputs;
  const auto& given = command.arguments().get<std::vector<std::string>>("INPUT");
  const auto is_dataset = [](const std::string& name) { return name.ends_with(".beton"); };
  if (std::ranges::none_of(given, is_dataset)) return {given, ""};
  if (given.size() > 1) {
    throw ConfigError(fmt::format(
        "predict: expected images, or one .beton file as the only INPUT, got {}. To read several "
        "files as one dataset, use --data.val_dataset=[A.beton,B.beton]",
        fmt::join(given, " ")));
  }
  const auto names_dataset = [](const Override& override) {
    return override.key == "data.val_dataset";
  };
  if (std::ranges::any_of(command.overrides(), names_dataset)) {
    throw ConfigError(
        fmt::format("predict: expected one dataset, got {} and --data.val_dataset", given[0]));
  }
  return {{}, given[0]};
}

PredictFormat read_format(const Arguments& options, const Inputs& inputs) {
  PredictFormat format;
  if (options.has("output")) format.file = options.text("output");
  format.json = options.has("json");
  format.top = integer(options, "top", 1, kMaxPredictions);
  format.logits = options.has("logits");
  const std::string extension = format.file.extension().string();
  if (!format.file.empty() && extension != ".npy" && extension != ".csv" && extension != ".jsonl") {
    throw ConfigError(fmt::format(
        "--output: expected a name ending in .npy, .csv or .jsonl, got {}", format.file.string()));
  }
  if (extension == ".npy" && options.given("top") && !format.json)
    throw ConfigError(
        "--top: expected a .csv or .jsonl file, which contains classes, got a .npy file");
  const bool csv = extension == ".csv" || (format.file.empty() && !format.json);
  if (format.logits && options.given("top") && csv)
    throw ConfigError(
        "--logits: expected no --top, because CSV output contains either logits or classes, got "
        "both");
  // A CSV of a dataset contains logits by default, as it did before predict could write classes.
  // JSON always contains the classes.
  if (inputs.photos.empty() && !options.given("top") && csv) format.logits = true;
  if (!inputs.photos.empty()) format.first_column = "name";
  return format;
}

/// Adapts the format to the targets of the recipe. For several classes per sample, JSON contains
/// all classes and a CSV contains logits unless --top is given. Outputs that are not classes are
/// written unchanged.
PredictFormat format_for(PredictFormat format, const Recipe& recipe, const Arguments& options) {
  if (recipe.targets == TargetKind::class_index) return format;
  const bool csv = format.file.extension() == ".csv" || (format.file.empty() && !format.json);
  const bool is_jsonl = format.file.extension() == ".jsonl";
  if (recipe.targets == TargetKind::multi_hot) {
    format.classes = Probability::sigmoid;
    if (!options.given("top")) format.top = kMaxPredictions;
    if (csv && !options.given("top")) format.logits = true;
    return format;
  }
  if (recipe.targets == TargetKind::class_mask && (csv || format.json || is_jsonl)) {
    throw ConfigError(fmt::format(
        "predict: expected --output FILE.npy for training.loss: {}, whose outputs are [samples, "
        "classes, height, width], got CSV or JSON output. A .npy file can store any shape",
        recipe.loss.name));
  }
  if (options.given("top")) {
    throw ConfigError(
        fmt::format("--top: expected a recipe whose outputs are classes, got training.loss: {} "
                    "(kind of targets: {})",
                    recipe.loss.name, name_of(recipe.targets)));
  }
  format.classes.reset();
  format.logits = true;
  return format;
}

/// The names of the classes, from the weights or the labels of a dataset.
/// @param classes the number of classes of the model. The names in a dataset are used only if their
/// number is the same.
std::vector<std::string> class_names(const Recipe& recipe, const data::BetonReader* reader,
                                     std::int64_t classes) {
  const TrainConfig& config = recipe.config;
  const auto spec = read_weights_spec(config.model.weights);
  if (spec && !spec->class_names.empty()) return spec->class_names;
  if (reader == nullptr) return {};
  std::vector<std::string> names = label_names(*reader, recipe.val_pipeline, config);
  if (names.empty() || std::ssize(names) == classes) return names;
  log_warning("{}: expected names of {} classes, as {} has, got {}. Classes are shown as numbers",
              reader->path().string(), classes, config.model.weights, names.size());
  return {};
}

/// The recipe's validation dataset, for its class names; null if none is set or it cannot be
/// opened.
std::unique_ptr<data::BetonReader> find_dataset(const Recipe& recipe) {
  if (recipe.config.data.val_dataset.empty()) return nullptr;
  try {
    return open_dataset("data.val_dataset", recipe);
  } catch (const Error& error) {
    log_info("data.val_dataset cannot be read, so its class names are not known: {}", error.what());
    return nullptr;
  }
}

class Predictor {
 public:
  /// Collective, like the other members: every rank must call it.
  Predictor(const ResolvedRun& run, const Registries& registries, RankSession& ranks,
            const data::BetonReader* dataset, DatasetUse use, const RunArgument& run_argument,
            PredictFormat format)
      : ranks_(ranks),
        model_(make_eval_model(run, registries, ranks, count_eval_outputs(run.recipe, dataset, use),
                               dataset, run_argument)),
        writer_(std::move(format),
                class_names(run.recipe, dataset, model_.plan.model.num_classes)) {}

  int predict_dataset(const data::BetonReader& reader) {
    if (ranks_.is_rank_zero())
      warn_of_unnamed_labels(model_.run.recipe, reader, model_.plan.model.num_classes);
    std::vector<std::string> names;
    for (std::uint64_t sample = 0; sample < reader.size(); ++sample)
      names.push_back(std::to_string(sample));
    const EvalSource opened = open_eval_source(model_, reader, positions(reader.size()));
    predict(opened, names, {}, 0, reader.size());
    warn_of_replaced(opened.source.get(), ranks_);
    return finish();
  }

  int predict_photos(const PhotoList& photos) {
    const std::string field = photo_field(model_.run.recipe);
    const std::span<const std::string> all = photos.paths;
    std::size_t first = 0;
    for (const std::size_t end : ends_of_groups(photos.paths)) {
      predict_group(all.subspan(first, end - first), field, first, all.size());
      first = end;
    }
    const auto rotated = ranks_.communicator().begin_sum(rotated_)->wait();
    if (rotated > 0 && ranks_.is_rank_zero())
      log_info("the EXIF orientation of {} is ignored",
               format_count(static_cast<std::uint64_t>(rotated), "image"));
    return finish();
  }

 private:
  [[nodiscard]] std::vector<std::uint64_t> positions(std::uint64_t samples) {
    return positions_of_rank(samples, model_.run.config().validation.batch_size,
                             ranks_.communicator());
  }

  /// The ends of the groups of photos that are predicted together. Rank 0 decides, because the
  /// groups depend on file sizes, which may differ from host to host. Collective.
  [[nodiscard]] std::vector<std::size_t> ends_of_groups(const std::vector<std::string>& paths) {
    std::vector<std::size_t> ends;
    std::size_t end = 0;
    while (ranks_.is_rank_zero() && end < paths.size()) {
      end += photo_group_size(paths, end);
      ends.push_back(end);
    }
    return nlohmann::json::parse(
               ranks_.communicator().all_gather(nlohmann::json(ends).dump()).front())
        .get<std::vector<std::size_t>>();
  }

  /// Each rank reads only the photos that it predicts.
  void predict_group(std::span<const std::string> paths, const std::string& field,
                     std::uint64_t before, std::uint64_t total) {
    const std::vector<std::uint64_t> indices = positions(paths.size());
    std::vector<std::string> own_paths;
    for (const std::uint64_t index : indices) own_paths.push_back(paths[index]);
    std::optional<PhotoDataset> dataset;
    EvalSource opened;
    std::vector<std::string> problems(paths.size());
    if (!own_paths.empty()) {
      dataset.emplace(own_paths, field, model_.run.loader_threads(),
                      [&](std::uint64_t) { show(before, total); });
      rotated_ += static_cast<std::int64_t>(dataset->rotated());
      for (std::size_t i = 0; i < own_paths.size(); ++i)
        problems[indices[i]] = dataset->problems()[i];
      opened = open_eval_source(model_, dataset->reader(), DatasetUse::predict);
    }
    const auto gathered = ranks_.communicator().all_gather(dump_json(nlohmann::json(problems)));
    for (const std::string& text : gathered) {
      const auto found = nlohmann::json::parse(text).get<std::vector<std::string>>();
      for (std::size_t i = 0; i < problems.size(); ++i)
        if (problems[i].empty()) problems[i] = found[i];
    }
    predict(opened, paths, problems, before, total);
  }

  void predict(const EvalSource& opened, std::span<const std::string> names,
               std::span<const std::string> problems, std::uint64_t before, std::uint64_t total) {
    if (opened.source) writer_.check_outputs(opened.output_dims);
    const at::Tensor logits = logits_of(opened, [&](std::int64_t done) {
      show(before + static_cast<std::uint64_t>(done), total);
      throw_if_any_stopped();
      return true;
    });
    if (!problems.empty()) warn_of_skipped(names, problems);
    if (ranks_.is_rank_zero()) writer_.add(logits, opened.passes, names, problems);
  }

  /// Returns the logits of all samples.
  /// @throws Error if the process is asked to stop
  at::Tensor logits_of(const EvalSource& opened, const engine::Evaluator::OnBatch& on_batch) {
    at::Tensor logits;
    try {
      logits = model_.evaluator.predict(*model_.model, opened.source.get(), ranks_.communicator(),
                                        on_batch);
    } catch (const DataError&) {
      throw_if_stopped();  // the signal came before the first batch
      throw;
    }
    throw_if_any_stopped();  // the source may have stopped waiting for a batch
    return logits;
  }

  /// Collective. @throws Error on every rank if one of them was asked to stop
  void throw_if_any_stopped() {
    if (!engine::any_rank_requested_stop(ranks_.communicator())) return;
    progress_.clear();
    throw_if_stopped();
    throw Error("predict: another rank was stopped", ExitCode::peer_failed);
  }

  void show(std::uint64_t done, std::uint64_t total) {
    if (!ranks_.is_rank_zero() || !progress_.due()) return;
    progress_.show(fmt::format("predicting {}/{}{}", done, total,
                               done > 0 ? ", " + progress_.rate(done, total) : ""));
  }

  void warn_of_skipped(std::span<const std::string> names, std::span<const std::string> problems) {
    for (std::size_t i = 0; i < names.size(); ++i) {
      if (problems[i].empty()) continue;
      ++skipped_;
      if (!ranks_.is_rank_zero()) continue;
      progress_.clear();
      log_warning("{}: skipped: {}", names[i], problems[i]);
    }
  }

  int finish() {
    progress_.clear();
    if (ranks_.is_rank_zero()) writer_.finish();
    if (skipped_ == 0) return static_cast<int>(ExitCode::done);
    if (ranks_.is_rank_zero()) {
      log_warning("{} of {} files could not be read as images", skipped_,
                  skipped_ + writer_.samples());
    }
    return static_cast<int>(ExitCode::dataset_invalid);
  }

  RankSession& ranks_;
  EvalModel model_;
  /// A signal must not end the process at once: the writer would leave an incomplete file.
  StopSignals signals_;
  PredictionWriter writer_;
  Progress progress_;
  std::int64_t skipped_ = 0;
  std::int64_t rotated_ = 0;
};

void report_ignored(const PhotoList& photos) {
  if (photos.ignored.empty()) return;
  const auto shown = std::span(photos.ignored).first(std::min(kFilesShown, photos.ignored.size()));
  log_info("ignored {}, hidden or without the extension of an image: {}{}",
           format_count(photos.ignored.size(), "file"), fmt::join(shown, ", "),
           shown.size() < photos.ignored.size() ? ", ..." : "");
}

/// Compares the lists of photos of all ranks, whose hosts may have different files. Collective.
/// @throws ConfigError on every rank if the lists differ
void check_same_photos(Communicator& ranks, const PhotoList& photos) {
  std::string names;
  for (const std::string& path : photos.paths) names += path + '\0';
  nlohmann::ordered_json identity;
  identity["INPUT"] =
      fmt::format("{}, names with xxh3 {:016x}", format_count(photos.paths.size(), "image"),
                  data::hash_of(std::as_bytes(std::span(names))));
  check_same_identity(ranks, identity);
}

void declare(Arguments& arguments) {
  arguments.example("precast predict runs/a photos/ -o predictions.csv");
  arguments.example("precast predict runs/a cat.jpg dog.png --top 5 --json");
  arguments.example("precast predict recipe.yaml --model.weights=final_weights.pt -o logits.npy");
  arguments.exit_codes({3, 4, 6, 10, 12, 13});
  arguments.optional_list("INPUT", "image files and folders of images, or a .beton file");
  arguments.options().add_options()("output,o", po::value<std::string>(),
                                    "file to write; .csv or .jsonl for classes, .npy for logits "
                                    "([samples, classes] float32); default: print CSV")(
      "top", number(1),
      "number of classes per sample, most probable first; for a multi-label loss, all classes "
      "unless it is given")(
      "logits", "write logits; in a CSV file instead of classes, in JSON in addition to them")(
      "json", "print the result as JSON; one object per line, with name and predictions");
}

Override dataset_override(const std::string& path) {
  return {"data.val_dataset", ConfigNode::from_text(path, {kCommandLine, 0, 0})};
}

}  // namespace

int run_predict(const std::vector<std::string>& args) {
  Registries registries = make_registries();
  RecipeArguments command("predict", kAbout, RecipeArguments::Positional::run_or_recipe);
  declare(command.arguments());
  if (!command.parse(args, recipe_help(registries))) return 0;
  const Inputs inputs = read_inputs(command);
  const PredictFormat given_format = read_format(command.arguments(), inputs);
  const RunArgument run_argument = read_run_argument(command.config_path(), command.overrides(),
                                                     "Give images after the recipe or the run");
  std::vector<Override> overrides = run_argument.with(command.overrides());
  if (!inputs.dataset.empty()) overrides.push_back(dataset_override(inputs.dataset));
  const Recipe recipe =
      load_recipe(run_argument.config, overrides, registries, RecipeUse::evaluate,
                  run_argument.run.empty() ? UnreadKeys::error : UnreadKeys::warning);
  const TrainConfig& config = recipe.config;
  const PredictFormat format = format_for(given_format, recipe, command.arguments());
  check_weights_given(config);
  std::vector<std::string> launch_args = {"predict"};
  launch_args.insert(launch_args.end(), args.begin(), args.end());
  return run_evaluation(recipe, launch_args, [&](const ResolvedRun& run, RankSession& ranks) {
    // Checks now whether the file can be written, not after hours of predicting.
    if (ranks.is_rank_zero() && !format.file.empty()) static_cast<void>(AtomicFile(format.file));
    if (ranks.is_rank_zero()) log_info("=> weights {}", config.model.weights);
    if (inputs.photos.empty()) {
      const auto reader = open_dataset("data.val_dataset", recipe);
      for (const std::string& warning :
           compare_outputs(run_argument.trained, run_argument.run.string(), *reader, recipe,
                           /*predicts=*/true))
        if (ranks.is_rank_zero()) log_warning("{}", warning);
      return Predictor(run, registries, ranks, reader.get(), DatasetUse::predict, run_argument,
                       format)
          .predict_dataset(*reader);
    }
    const PhotoList photos = list_photos(inputs.photos);
    check_same_photos(ranks.communicator(), photos);
    if (ranks.is_rank_zero()) report_ignored(photos);
    const auto dataset = find_dataset(recipe);
    if (!has_image_input(recipe.val_pipeline, config, dataset.get())) {
      throw ConfigError(
          fmt::format("predict: expected a network that reads images, got one that reads other "
                      "fields of {}. Give a dataset",
                      dataset->path().string()));
    }
    return Predictor(run, registries, ranks, dataset.get(), DatasetUse::name_classes, run_argument,
                     format)
        .predict_photos(photos);
  });
}

}  // namespace precast::tools
