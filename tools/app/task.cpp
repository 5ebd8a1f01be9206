#include "tools/app/task.h"

#include <ATen/Context.h>
#include <ATen/core/grad_mode.h>
#include <ATen/ops/zeros.h>
#include <c10/core/ScalarType.h>
#include <c10/util/Exception.h>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <optional>
#include <set>
#include <stdexcept>
#include <utility>

#include "data/loader/outputs.h"
#include "data/torch/batch_source.h"
#include "data/torch/value_range.h"
#include "framework/api/torch_message.h"
#include "framework/core/error.h"
#include "framework/core/format.h"
#include "framework/core/suggest.h"
#include "framework/engine/metric_counts.h"
#include "framework/engine/out_of_memory.h"
#include "framework/engine/precision.h"
#include "framework/engine/state_archive.h"
#include "tools/app/model_probe.h"
#include "tools/app/recipe_outputs.h"
#include "tools/app/recipe_parts.h"
#include "tools/app/session.h"

namespace precast::tools {
namespace {

/// Number of samples, evenly spread over a dataset, in which find_invalid_target() reads the
/// targets.
constexpr std::uint64_t kCheckedSamples = 256;
/// The number for a dataset on a server, where each sample needs a request.
constexpr std::uint64_t kCheckedRemoteSamples = 4;

std::string tensor_text(at::IntArrayRef sizes, at::ScalarType type) {
  return fmt::format("[{}] {}", fmt::join(sizes, ", "), c10::toString(type));
}

/// The shape and type of one sample of a batch.
std::string shape_of(const at::Tensor& tensor) {
  return tensor_text(tensor.sizes().slice(1), tensor.scalar_type());
}

/// The shape and type of a part's result.
std::string result_text(const at::Tensor& result) {
  return result.defined() ? tensor_text(result.sizes(), result.scalar_type())
                          : "an undefined tensor";
}

/// @throws ConfigError unless the loss accepts a target of this shape and type.
void check_target(const at::Tensor& target, const Recipe& recipe) {
  const bool integer = !target.is_floating_point() && !target.is_complex();
  const auto expect = [&](bool fits, std::string_view expected) {
    if (fits) return;
    recipe.refuse("data.targets",
                  fmt::format("training.loss: {}: expected {} for each sample, got {}. See the "
                              "losses in recipes/README.md",
                              recipe.loss.name, expected, shape_of(target)));
  };
  switch (recipe.targets) {
    case TargetKind::class_index:
      return expect(target.dim() == 1 && target.scalar_type() == at::kLong, "an integer");
    case TargetKind::values:
      return expect(true, "");
    case TargetKind::multi_hot:
      return expect(target.dim() == 2, "an array [classes] of 0 and 1");
    case TargetKind::class_mask:
      return expect(target.dim() == 3 && integer, "a mask [H, W] of an integer type");
    case TargetKind::none:
      return;
  }
}

/// @throws ConfigError with the location of the key if the pipeline lacks an output that the key
/// names.
void check_names(const data::BetonReader& reader, const Recipe& recipe,
                 const data::Pipeline& pipeline) {
  std::vector<std::string> known;
  for (const data::Output& output : data::resolve_outputs(reader, pipeline, /*normalize=*/true))
    known.push_back(output.name);
  const auto check = [&](std::string_view key, const std::vector<std::string>& names) {
    for (const std::string& name : names) {
      if (std::ranges::find(known, name) != known.end()) continue;
      recipe.refuse(key, fmt::format("{}: expected an output of the pipeline, got '{}'. {}",
                                     reader.path().string(), name, suggest(name, known)));
    }
  };
  check("data.inputs", recipe.config.data.inputs);
  check("data.targets", recipe.config.data.targets);
}

/// The first target of a synthetic sample, as the pipeline would deliver it.
at::Tensor synthetic_target(const data::BetonReader& reader, const Recipe& recipe,
                            const data::Pipeline& pipeline) {
  const auto batches =
      data::make_batch_maker(reader, pipeline, field_choice(recipe), at::kCPU, at::kFloat);
  return batches(1, recipe.config.validation.resolution).target();
}

/// Searches the first targets of some samples for a number outside the range.
std::optional<data::ArrayNumber> find_invalid_target(const data::BetonReader& reader,
                                                     const Recipe& recipe,
                                                     const data::Pipeline& pipeline,
                                                     const data::ValueRange& range) {
  const auto outputs = data::resolve_outputs(reader, pipeline, /*normalize=*/true);
  const auto target =
      std::ranges::find(outputs, recipe.config.data.targets.front(), &data::Output::name);
  if (target == outputs.end()) return std::nullopt;
  return data::find_out_of_range(
      reader, *target, range, reader.remotes().empty() ? kCheckedSamples : kCheckedRemoteSamples);
}

/// Checks that the first target, an array of labels, has only values from 0 to 1. This finds
/// datasets whose arrays are lists of class numbers, such as [3, 7].
/// @throws DataError naming the sample and the value
void check_multi_hot(const data::BetonReader& reader, const Recipe& recipe,
                     const data::Pipeline& pipeline) {
  const auto wrong = find_invalid_target(reader, recipe, pipeline, {.low = 0, .high = 1});
  if (!wrong) return;
  throw DataError(fmt::format(
      "{}: expected numbers from 0 to 1 in '{}', one for each class, for training.loss: {}, got "
      "{:g}. A list of class numbers must be written as one number for each class: [0, 1, 1] for "
      "the classes 1 and 2 of three",
      reader.sample_text(wrong->sample), recipe.config.data.targets.front(), recipe.loss.name,
      wrong->value));
}

/// Checks that the first target, a mask, contains only classes and the number that the loss
/// ignores. A loss without the option `ignore_index` may have its own rule for other values.
/// @throws DataError naming the sample and the value
void check_masks(const data::BetonReader& reader, const Recipe& recipe,
                 const data::Pipeline& pipeline, std::int64_t classes) {
  const auto ignored = ignored_class(recipe);
  if (!ignored) return;
  const auto wrong = find_invalid_target(
      reader, recipe, pipeline,
      {.low = 0, .high = static_cast<double>(classes - 1), .extra = static_cast<double>(*ignored)});
  if (!wrong) return;
  throw DataError(fmt::format(
      "{}: expected a class from 0 to {} or {} (loss.ignore_index) in each pixel of '{}', got {:g}",
      reader.sample_text(wrong->sample), classes - 1, *ignored, recipe.config.data.targets.front(),
      wrong->value));
}

/// Runs `work`. Errors of libtorch (except those of the device), ConfigError and std::logic_error
/// become errors at `key`.
template <typename Work>
auto report_errors_at(const Recipe& recipe, std::string_view key, const std::string& what,
                      Work work) {
  try {
    return work();
  } catch (const c10::Error& error) {
    if (engine::is_device_error(error)) throw;
    recipe.refuse(key, fmt::format("{}: {}", what, first_line(error)));
  } catch (const ConfigError& error) {
    recipe.refuse(key, error.what());
  } catch (const std::logic_error& error) {
    recipe.refuse(key, fmt::format("{}: {}", what, error.what()));
  }
}

/// @throws ConfigError unless the loss of a batch is a floating-point scalar
void check_loss(const std::string& name, const at::Tensor& loss) {
  if (loss.defined() && loss.dim() == 0 && loss.is_floating_point()) return;
  throw ConfigError(
      fmt::format("{}: expected a floating-point scalar, the mean over the batch, "
                  "got {}",
                  name, result_text(loss)));
}

/// @throws ConfigError unless `counted` has the shape and type that Metric::count() must return for
/// `samples` samples
void check_count(const Metric& metric, const at::Tensor& counted, std::int64_t samples) {
  if (engine::is_count_of(metric, counted, samples)) return;
  std::string expected = metric.sums() == 0 ? "[sums]" : fmt::format("[{}]", metric.sums());
  if (metric.needs_rows()) expected = fmt::format("[{}, columns]", samples);
  throw ConfigError(fmt::format("{}: expected count() to return {} {}, got {}", metric.name(),
                                expected, c10::toString(at::kDouble), result_text(counted)));
}

/// Makes cuDNN choose algorithms by heuristics. Timing the algorithms takes seconds, too long for
/// batches that occur once.
class WithoutBenchmark {
 public:
  WithoutBenchmark() { at::globalContext().setBenchmarkCuDNN(false); }
  WithoutBenchmark(const WithoutBenchmark&) = delete;
  WithoutBenchmark& operator=(const WithoutBenchmark&) = delete;
  ~WithoutBenchmark() { at::globalContext().setBenchmarkCuDNN(before_); }

 private:
  bool before_ = at::globalContext().benchmarkCuDNN();
};

/// Whether the batches differ only in their values.
bool same_signature(const Batch& a, const Batch& b) {
  const auto same = [](const NamedTensor& x, const NamedTensor& y) {
    return x.name == y.name && x.tensor.sizes() == y.tensor.sizes() &&
           x.tensor.scalar_type() == y.tensor.scalar_type();
  };
  return a.inputs == b.inputs && a.targets == b.targets &&
         std::ranges::equal(a.fields, b.fields, same);
}

}  // namespace

std::int64_t count_outputs(const data::BetonReader& reader, const Recipe& recipe,
                           const data::Pipeline& pipeline, std::int64_t given) {
  const TargetKind kind = recipe.targets;
  const bool finds_target = kind == TargetKind::class_index || kind == TargetKind::none;
  if (!finds_target && recipe.config.data.targets.empty()) {
    recipe.refuse(
        "training.loss",
        fmt::format("{}: expected data.targets to name the output of the pipeline that the loss "
                    "reads, got none",
                    recipe.loss.name));
  }
  check_names(reader, recipe, pipeline);
  if (kind == TargetKind::none) {
    if (given > 0) return given;
    recipe.refuse("model.num_classes",
                  fmt::format("missing. The number of outputs of the model must be given, because "
                              "training.loss: {} reads no targets",
                              recipe.loss.name));
  }
  const at::Tensor target = synthetic_target(reader, recipe, pipeline);
  check_target(target, recipe);
  if (kind == TargetKind::class_index) return count_classes(reader, pipeline, recipe.config, given);
  if (kind == TargetKind::class_mask) {
    if (given <= 0) {
      recipe.refuse(
          "model.num_classes",
          "missing. The number of classes must be given, because masks do not contain it");
    }
    check_masks(reader, recipe, pipeline, given);
    return given;
  }
  if (kind == TargetKind::multi_hot) check_multi_hot(reader, recipe, pipeline);
  const std::int64_t width = target.numel();
  if (given > 0 && given != width) {
    recipe.refuse("model.num_classes",
                  fmt::format("expected {}, the number of values of '{}' in {}, got {}", width,
                              recipe.config.data.targets.front(), reader.path().string(), given));
  }
  return width;
}

void check_parts(Model* model, const TrainPlan& plan, const Loss& loss, const Recipe& recipe,
                 const Batch& batch) {
  const at::NoGradGuard no_grad;
  const at::Tensor outputs = report_errors_at(recipe, "model.arch", "model",
                                              [&] { return check_output(model, plan, batch); });
  report_errors_at(recipe, "training.loss",
                   fmt::format("{} does not fit the outputs and targets", recipe.loss.name), [&] {
                     const engine::AutocastScope autocast(batch.input().device(), plan.precision);
                     check_loss(recipe.loss.name, loss(outputs, batch));
                   });
  for (const auto& metric : recipe.metrics) {
    report_errors_at(recipe, "validation.metrics",
                     fmt::format("{} does not fit the outputs and targets", metric->name()),
                     [&] { check_count(*metric, metric->count(outputs, batch), batch.size()); });
  }
}

std::vector<ProbeBatch> probe_batches(const ResolvedRun& run, const TrainPlan& plan,
                                      const data::BetonReader* train,
                                      const data::BetonReader* val) {
  const std::int64_t evaluated_px = run.config().validation.resolution;
  std::vector<ProbeBatch> trials;
  const auto add = [&](Batch batch, std::string context) {
    const auto repeats = [&](const ProbeBatch& other) {
      return same_signature(other.batch, batch);
    };
    if (std::ranges::none_of(trials, repeats))
      trials.push_back({.batch = std::move(batch), .context = std::move(context)});
  };
  if (!run.config().training.eval_only) {
    std::set<std::int64_t> sizes_px(plan.image_size_px.begin(), plan.image_size_px.end());
    if (sizes_px.empty()) sizes_px.insert(evaluated_px);
    const BatchMaker batches = make_batch_maker(train, run.recipe.train_pipeline, run, plan);
    for (const std::int64_t size_px : sizes_px)
      add(batches(2, size_px), sizes_px.size() == 1 ? "" : fmt::format("at {} px", size_px));
  }
  if (val != nullptr)
    add(make_batch_maker(val, run.recipe.val_pipeline, run, plan)(2, evaluated_px),
        fmt::format("in the evaluation, validation.resolution: {}", evaluated_px));
  return trials;
}

void check_parts(Model* model, const TrainPlan& plan, const Loss& loss, const Recipe& recipe,
                 const std::vector<ProbeBatch>& trials) {
  const WithoutBenchmark fast;
  for (const ProbeBatch& trial : trials) {
    try {
      check_parts(model, plan, loss, recipe, trial.batch);
    } catch (const ConfigError& error) {
      if (trial.context.empty()) throw;
      throw ConfigError(fmt::format("{} ({})", error.what(), trial.context));
    }
  }
}

void check_state(const Model& model, const Recipe& recipe) {
  report_errors_at(recipe, "model.arch", "model", [&] { engine::check_storable(model.state()); });
}

std::string outputs_text(TargetKind targets, std::int64_t count) {
  const bool classes = targets != TargetKind::values && targets != TargetKind::none;
  if (classes) return format_count(static_cast<std::uint64_t>(count), "class");
  return format_count(static_cast<std::uint64_t>(count), "output");
}

}  // namespace precast::tools
