#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>

#include "framework/api/train_plan.h"
#include "tools/app/resolved_run.h"

namespace precast::tools {

/// The value of training.precision that chooses this precision.
[[nodiscard]] std::string precision_name(Precision precision);

/// Makes the plan of the recipe, including the changes that methods make.
/// @param samples number of samples in an epoch; 0: unknown, and the plan has no steps.
/// @param num_classes 1 may also mean that the number is unknown.
/// @param use if `train`, also checks that the schedule's rates are finite and not negative, that
/// the batch size suits the micro-batches that methods set, that dist.sync_bn and the batch size
/// suit the method ghost_batch_norm, and that loss.target_threshold suits the label smoothing and
/// the number of classes, unless training.eval_only is set. @throws ConfigError, also for changes
/// by methods that TrainPlan does not allow
[[nodiscard]] TrainPlan make_plan(const ResolvedRun& run, const Registries& registries,
                                  std::int64_t samples, std::int64_t num_classes,
                                  RecipeUse use = RecipeUse::train);

/// Why an epoch of `samples` samples of `dataset` has no step; empty if it has steps, or if
/// `samples` is 0 (unknown).
[[nodiscard]] std::string no_steps_reason(const TrainPlan& plan, std::int64_t samples,
                                          const std::string& dataset);

/// Warns if the run ends before the epoch of the highest learning rate, before the end of the
/// warm-up, or before the images have their full size. This is not an error, because ffcv-imagenet
/// accepts such recipes, and users try recipes for one epoch.
void warn_of_short_run(const Recipe& recipe, const TrainPlan& plan, Diagnostics& diagnostics);

/// Warns if the schedule has a rate above the plan's peak_lr at the start or the end of an epoch
/// or, if the plan has steps, in the first or the last step of an epoch.
void warn_of_high_rates(const Recipe& recipe, const TrainPlan& plan, Diagnostics& diagnostics);

/// The plan as JSON. @param values the result of resolved_values(), or Recipe::resolved if the
/// training set was not read. @param per_step whether to add the learning rate of every step.
[[nodiscard]] nlohmann::ordered_json describe_plan(const ResolvedRun& run, const TrainPlan& plan,
                                                   const nlohmann::ordered_json& values,
                                                   bool per_step);

/// Prints a plan as text. @param plan the object that `train --dry-run --json` prints.
void print_plan(const ResolvedRun& run, const nlohmann::ordered_json& plan);

/// print_plan() for a run with training.eval_only: prints what the evaluation reads.
void print_evaluation(const ResolvedRun& run, const nlohmann::ordered_json& plan);

}  // namespace precast::tools
