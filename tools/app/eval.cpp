#include "tools/app/eval.h"

#include <fmt/format.h>

#include <algorithm>
#include <boost/program_options.hpp>
#include <cmath>

#include "framework/core/error.h"
#include "framework/core/format.h"
#include "framework/core/log.h"
#include "framework/core/progress.h"
#include "tools/app/class_figures.h"
#include "tools/app/data_description.h"
#include "tools/app/eval_session.h"
#include "tools/app/output_choice.h"
#include "tools/app/session.h"
#include "tools/app/weights_check.h"
#include "tools/cli/json_output.h"
#include "tools/cli/recipe_arguments.h"
#include "tools/cli/shared_options.h"

namespace precast::tools {
namespace {

using nlohmann::ordered_json;

/// The run, the weights and the dataset that were evaluated.
ordered_json describe_subject(const Recipe& recipe, const RunArgument& run_argument) {
  ordered_json subject = ordered_json::object();
  if (!run_argument.run.empty()) subject["run"] = run_argument.run.string();
  subject["weights"] = recipe.config.model.weights;
  subject["dataset"] = recipe.resolved.at("data.val_dataset");
  return subject;
}

void print_subject(const ordered_json& subject, const RunArgument& run_argument) {
  for (const auto& [name, value] : subject.items()) {
    const bool unfinished = name == "run" && !run_argument.checkpoint.empty();
    fmt::print("{:<8} {}{}\n", name, file_text(value),
               unfinished ? fmt::format(" ({})", run_argument.checkpoint.filename().string()) : "");
  }
}

void print_result(const engine::EvalResult& result, bool images) {
  if (result.is_classification)
    fmt::print("top-1 {:.4f}   top-5 {:.4f}   ", result.top_1(), result.top_5());
  fmt::print("loss {:.4f}   ({} in {})\n", result.loss,
             format_count(static_cast<std::uint64_t>(result.samples), images ? "image" : "sample"),
             format_duration(result.seconds));
  for (const auto& [name, value] : result.metrics) fmt::print("{} {:.4f}\n", name, value);
}

ordered_json figures_of(const engine::EvalResult& result) {
  ordered_json figures = eval_figures(result);
  if (result.is_classification) {
    figures["top_1_correct"] = result.top_1_correct;
    figures["top_5_correct"] = result.top_5_correct;
  }
  figures.update({{"images", result.samples}, {"seconds", result.seconds}});
  return figures;
}

struct Evaluated {
  engine::EvalResult result;
  /// The result of class_figures().
  ordered_json classes;
  /// Whether the first input is an image.
  bool images = true;
};

/// Collective.
Evaluated evaluate(const ResolvedRun& run, RankSession& ranks, const Registries& registries,
                   const RunArgument& run_argument) {
  const auto reader = open_dataset("data.val_dataset", run.recipe);
  const std::int64_t outputs = count_eval_outputs(run.recipe, reader.get(), DatasetUse::evaluate);
  for (const std::string& warning :
       compare_outputs(run_argument.trained, run_argument.run.string(), *reader, run.recipe))
    if (ranks.is_rank_zero()) log_warning("{}", warning);
  if (ranks.is_rank_zero()) warn_of_unnamed_labels(run.recipe, *reader, outputs);
  EvalModel model = make_eval_model(run, registries, ranks, outputs, reader.get(), run_argument);
  const EvalSource opened = open_eval_source(model, *reader, DatasetUse::evaluate);
  const auto loss = registries.losses.make(model.plan.loss);
  const std::int64_t samples = opened.source->samples();
  Progress progress;
  const engine::EvalResult result = *model.evaluator.evaluate(
      *model.model, *loss, *opened.source, ranks.communicator(), [&](std::int64_t done) {
        // The numbers of samples of two ranks differ by at most one, so this approximates the
        // total.
        if (ranks.is_rank_zero() && progress.due()) {
          progress.show(
              fmt::format("evaluating {}/{}", std::min(done * run.world, samples), samples));
        }
        return true;
      });
  progress.clear();
  warn_of_replaced(opened.source.get(), ranks);
  return {result, class_figures(result, *reader, run.recipe), opened.images};
}

/// The results, with the names that they have in a training run's summary.json.
ordered_json summary_of(const Evaluated& evaluated, int world) {
  const engine::EvalResult& result = evaluated.result;
  ordered_json summary = eval_figures(result);
  summary.update(ordered_json{{"val_images", result.samples},
                              {"eval_minutes", result.seconds / 60},
                              {"world_size", world},
                              {"classes", evaluated.classes}});
  return summary;
}

int evaluate_and_print(const ResolvedRun& run, RankSession& ranks, const Registries& registries,
                       bool json, const RunArgument& run_argument, ResultFile* file) {
  const Evaluated evaluated = evaluate(run, ranks, registries, run_argument);
  const engine::EvalResult& result = evaluated.result;
  if (!std::isfinite(result.loss)) {
    throw Error(fmt::format("eval: expected a finite loss, got {}. Check whether the weights "
                            "contain NaN or infinity",
                            result.loss),
                ExitCode::diverged);
  }
  if (!ranks.is_rank_zero()) return 0;
  if (file != nullptr) file->add(summary_of(evaluated, ranks.communicator().world()));
  ordered_json report = describe_subject(run.recipe, run_argument);
  if (json) {
    report.update(figures_of(result));
    report["classes"] = evaluated.classes;
    print_json(report);
  } else {
    print_subject(report, run_argument);
    print_result(result, evaluated.images);
  }
  return 0;
}

}  // namespace

int evaluate_recipe(const Recipe& recipe, const Registries& registries,
                    const std::vector<std::string>& command, bool json,
                    const RunArgument& run_argument, ResultFile* file) {
  check_weights_given(recipe.config);
  return run_evaluation(
      recipe, command,
      [&](const ResolvedRun& run, RankSession& ranks) {
        return evaluate_and_print(run, ranks, registries, json, run_argument, file);
      },
      [file](int code, const std::string& error) {
        if (file != nullptr) file->write_failure(code, error);
      });
}

int run_eval(const std::vector<std::string>& args) {
  Registries registries = make_registries();
  RecipeArguments command(
      "eval",
      "Evaluates weights on data.val_dataset. A recipe needs model.weights: --model.weights=FILE. "
      "For a run folder, the final weights are used, or the run's newest checkpoint if that is "
      "newer.",
      RecipeArguments::Positional::run_or_recipe);
  command.arguments().options().add_options()("json", kJsonHelp);
  command.arguments().example("precast eval runs/a");
  command.arguments().example("precast eval recipe.yaml --model.weights=weights.safetensors");
  command.arguments().exit_codes({12, 13});
  if (!command.parse(args, recipe_help(registries))) return 0;
  const RunArgument run_argument = read_run_argument(command.config_path(), command.overrides());
  const Recipe recipe = load_recipe(
      run_argument.config, run_argument.with(command.overrides()), registries, RecipeUse::evaluate,
      run_argument.run.empty() ? UnreadKeys::error : UnreadKeys::warning);
  std::vector<std::string> launch_args = {"eval"};
  launch_args.insert(launch_args.end(), args.begin(), args.end());
  return evaluate_recipe(recipe, registries, launch_args, command.arguments().has("json"),
                         run_argument);
}

}  // namespace precast::tools
