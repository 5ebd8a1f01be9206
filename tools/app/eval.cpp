#include "tools/app/eval.h"

#include <fmt/core.h>

#include <boost/program_options.hpp>
#include <cmath>

#include "framework/api/single_rank.h"
#include "framework/core/error.h"
#include "framework/core/progress.h"
#include "tools/app/session.h"
#include "tools/cli/json_output.h"
#include "tools/cli/recipe_arguments.h"

namespace precast::tools {

int evaluate_recipe(const Recipe& recipe, const Registries& registries, bool json) {
  EvalSession session = make_eval_session(recipe, registries, /*labels_matter=*/true);
  const auto loss = registries.losses.make(session.plan.loss);
  engine::EvalResult result;
  {
    Progress progress;
    const auto single = make_single_rank();
    result = *session.evaluator.evaluate(
        *session.model, *loss, *session.source, *single, [&](std::int64_t done) {
          if (progress.due())
            progress.show(fmt::format("evaluating {}/{}", done, session.source->samples()));
          return true;
        });
  }
  if (!std::isfinite(result.loss)) {
    throw Error(
        fmt::format(
            "eval: expected a finite loss, got {}: the weights or their outputs are not numbers",
            result.loss),
        ExitCode::diverged);
  }
  if (json) {
    nlohmann::ordered_json figures = {{"top_1", result.top_1()},
                                      {"top_5", result.top_5()},
                                      {"val_loss", result.loss},
                                      {"top_1_correct", result.top_1_correct},
                                      {"top_5_correct", result.top_5_correct},
                                      {"images", result.samples},
                                      {"seconds", result.seconds}};
    for (const auto& [name, value] : result.metrics) figures[name] = value;
    print_json(figures);
  } else {
    fmt::print("top-1 {:.4f}   top-5 {:.4f}   loss {:.4f}   ({} images in {})\n", result.top_1(),
               result.top_5(), result.loss, result.samples, format_duration(result.seconds));
    for (const auto& [name, value] : result.metrics) fmt::print("{} {:.4f}\n", name, value);
  }
  return 0;
}

int run_eval(const std::vector<std::string>& args) {
  Registries registries = make_registries();
  RecipeArguments command("eval", "Evaluates model.weights on data.val_dataset.");
  command.arguments().options().add_options()("json", "print results as JSON");
  if (!command.parse(args, recipe_help(registries))) return 0;
  const Recipe recipe =
      load_recipe(command.config_path(), command.overrides(), registries, RecipeUse::evaluate);
  return evaluate_recipe(recipe, registries, command.arguments().has("json"));
}

}  // namespace precast::tools
