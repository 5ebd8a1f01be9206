#include "tools/app/predict.h"

#include <fmt/core.h>
#include <fmt/format.h>

#include <boost/program_options.hpp>
#include <filesystem>
#include <iterator>

#include "framework/core/archive/npy.h"
#include "framework/core/error.h"
#include "framework/core/file.h"
#include "framework/core/log.h"
#include "framework/core/progress.h"
#include "tools/app/session.h"
#include "tools/cli/recipe_arguments.h"

namespace precast::tools {
namespace {

namespace po = boost::program_options;

/// One line per sample: `sample,logit_0,logit_1,...`, with nine digits, which restore the same
/// float32.
std::string to_csv(const at::Tensor& logits) {
  std::string text = "sample";
  for (std::int64_t c = 0; c < logits.size(1); ++c) text += fmt::format(",logit_{}", c);
  text += "\n";
  const float* values = logits.const_data_ptr<float>();
  for (std::int64_t n = 0; n < logits.size(0); ++n) {
    fmt::format_to(std::back_inserter(text), "{}", n);
    for (std::int64_t c = 0; c < logits.size(1); ++c)
      fmt::format_to(std::back_inserter(text), ",{:.9g}", *values++);
    text += "\n";
  }
  return text;
}

}  // namespace

int run_predict(const std::vector<std::string>& args) {
  Registries registries = make_registries();
  RecipeArguments command(
      "predict",
      "Writes the logits of every sample of data.val_dataset, in file order (with "
      "validation.lr_tta those of the\nimage and its mirror image are summed).");
  command.arguments().options().add_options()("output,o", po::value<std::string>()->required(),
                                              "[samples, classes] float32 as .npy, or a .csv");
  if (!command.parse(args, recipe_help(registries))) return 0;
  const std::filesystem::path output = command.arguments().text("output");
  if (output.extension() != ".npy" && output.extension() != ".csv") {
    throw ConfigError(
        fmt::format("--output: expected a name ending in .npy or .csv, got {}", output.string()));
  }
  const Recipe recipe =
      load_recipe(command.config_path(), command.overrides(), registries, RecipeUse::evaluate);
  EvalSession session = make_eval_session(recipe, registries, /*labels_matter=*/false);
  at::Tensor logits;
  {
    Progress progress;
    logits = session.evaluator.predict(*session.model, *session.source, [&](std::int64_t done) {
      if (progress.due())
        progress.show(fmt::format("predicting {}/{}", done, session.source->samples()));
      return true;
    });
  }
  logits = logits.contiguous();
  if (output.extension() == ".csv") {
    write_file(output, to_csv(logits));
  } else {
    const auto* bytes = static_cast<const std::byte*>(logits.const_data_ptr());
    write_npy(output, DType::f32, logits.sizes().vec(), {bytes, logits.nbytes()});
  }
  log_info("{}: {} samples x {} classes", output.string(), logits.size(0), logits.size(1));
  return 0;
}

}  // namespace precast::tools
