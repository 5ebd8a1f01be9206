#include "tools/app/recipe_trial.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <memory>
#include <set>

#include "data/beton/reader.h"
#include "framework/core/error.h"
#include "tools/app/model_probe.h"
#include "tools/app/plan.h"
#include "tools/app/recipe_parts.h"
#include "tools/app/session.h"
#include "tools/app/task.h"
#include "tools/app/weights_check.h"
#include "tools/cli/recipe_arguments.h"

namespace precast::tools {
namespace {

/// Reports transforms of the validation pipeline that cannot work at validation.resolution and, in
/// a run that trains, transforms of the training pipeline that cannot work at the image size of one
/// of the epochs.
void check_image_sizes(const Recipe& recipe, const TrainPlan& plan, bool evaluates,
                       Diagnostics& diagnostics) {
  if (!evaluates) data::check_image_sizes(recipe.train_pipeline, plan.image_size_px, diagnostics);
  const std::int64_t evaluated[] = {recipe.config.validation.resolution};
  data::check_image_sizes(recipe.val_pipeline, evaluated, diagnostics);
}

/// The dataset whose samples the model reads; null if it cannot be opened.
std::unique_ptr<data::BetonReader> try_open_dataset(const Recipe& recipe, bool evaluates) {
  try {
    return open_dataset(evaluates ? "data.val_dataset" : fields_key(recipe), recipe);
  } catch (const Error&) {
    return nullptr;
  }
}

/// The number of outputs; 1 if it is unknown.
std::int64_t count_probe_outputs(const Recipe& recipe, const data::BetonReader* samples,
                                 bool evaluates) {
  const auto& model = recipe.config.model;
  if (model.num_classes > 0) return model.num_classes;
  std::int64_t outputs = 0;
  try {
    if (evaluates && !model.weights.empty()) outputs = classes_of_weights(model.weights);
    if (outputs == 0 && samples != nullptr) {
      outputs = count_outputs(*samples, recipe,
                              evaluates ? recipe.val_pipeline : recipe.train_pipeline, /*given=*/0);
    }
  } catch (const Error&) {  // reported when the command reads the file
  }
  return std::max<std::int64_t>(outputs, 1);
}

/// Whether to test the model on images. A model that reads other fields is tested later, on these
/// fields (Assembly, open_eval_source). Without a dataset, training is assumed to be on images.
bool may_read_images(const Recipe& recipe, const data::BetonReader* samples, bool evaluates) {
  if (!recipe.config.data.inputs.empty()) return false;
  if (samples == nullptr) return !evaluates;
  return samples->first_field(data::FieldType::image) < samples->fields().size();
}

/// Tests a model that is not part of precast: it may fail, or ignore settings that precast's own
/// models apply.
void probe_model(const Recipe& recipe, const TrainPlan& plan, const Registries& registries,
                 bool evaluates, const Origin& origin, Diagnostics& diagnostics) {
  std::set<std::int64_t> sizes = {recipe.config.validation.resolution};
  if (!evaluates) {
    for (const std::int64_t size_px : plan.image_size_px) {
      sizes.insert(size_px);
      // A method may shrink images that another method has already shrunk.
      std::int64_t smallest_px = size_px;
      for (const NamedMethod& named : recipe.methods) {
        sizes.insert(named.method->smallest_side(size_px));
        sizes.insert(smallest_px = named.method->smallest_side(smallest_px));
      }
    }
  }
  const std::string problem = image_size_problem(registries.models, plan, sizes);
  if (!problem.empty()) throw ConfigError(problem);
  // The number of ranks is not known here: torchrun or dist.nproc may start them.
  const bool sync_bn = !evaluates && recipe.config.dist.sync_bn;
  for (const std::string& sentence : find_ignored_settings(registries.models, plan, sync_bn))
    diagnostics.warning(origin, "model.arch", sentence);
}

}  // namespace

void probe_parts(const Recipe& recipe, const Registries& registries, RecipeUse use,
                 const std::string& path, Diagnostics& diagnostics) {
  const Origin origin{path.empty() ? kCommandLine : path, 0, 0};
  const bool evaluates = use == RecipeUse::evaluate || recipe.config.training.eval_only;
  std::unique_ptr<data::BetonReader> samples;
  std::int64_t outputs = std::max<std::int64_t>(recipe.config.model.num_classes, 1);
  if (!is_built_in(recipe.config.model.arch)) {
    if (recipe.config.data.inputs.empty() || recipe.config.model.num_classes == 0)
      samples = try_open_dataset(recipe, evaluates);
    outputs = count_probe_outputs(recipe, samples.get(), evaluates);
  }
  try {
    const TrainPlan plan = make_plan(requested_run(recipe), registries, 0, outputs, use);
    check_image_sizes(recipe, plan, evaluates, diagnostics);
    if (!evaluates) {
      warn_of_short_run(recipe, plan, diagnostics);
      warn_of_high_rates(recipe, plan, diagnostics);
    }
    static_cast<void>(registries.optimizers.make(plan.optimizer, {{}, plan.peak_lr}));
    const TargetKind targets = target_kind_of(plan.loss, registries.losses);
    if (targets != recipe.targets) {
      throw ConfigError(fmt::format(
          "methods: expected a loss that reads {}, as training.loss: {} does, got {}, which one of "
          "the methods sets",
          recipe.targets == TargetKind::none
              ? "no targets"
              : fmt::format("targets of kind {}", name_of(recipe.targets)),
          recipe.loss.name, plan.loss.name));
    }
    if (!is_built_in(plan.model.arch)) {
      if (may_read_images(recipe, samples.get(), evaluates))
        probe_model(recipe, plan, registries, evaluates, origin, diagnostics);
    } else if (plan.model.params.kind != ConfigNode::Kind::null) {
      // Checks the options. Without options this is skipped, because constructing a large model
      // takes a second.
      static_cast<void>(make_model(registries.models, plan.model));
    }
  } catch (const ConfigError& error) {
    diagnostics.error(origin, "", error);
  }
}

}  // namespace precast::tools
