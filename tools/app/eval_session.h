#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "data/beton/reader.h"
#include "data/order/order.h"
#include "framework/api/batch_source.h"
#include "framework/api/method.h"
#include "framework/api/model.h"
#include "framework/api/train_plan.h"
#include "framework/engine/evaluator.h"
#include "tools/app/rank_session.h"
#include "tools/app/resolved_run.h"

namespace precast::tools {

/// A model with the weights of `model.weights`, on its device: for eval and predict. Borrows the
/// recipe.
struct EvalModel {
  ResolvedRun run;
  TrainPlan plan;
  std::unique_ptr<Model> model;
  engine::Evaluator evaluator;
  /// While they exist, the model has the averages of a checkpoint's methods (ema, swa).
  std::vector<std::unique_ptr<Method::EvalGuard>> averages;
};

/// @throws ConfigError if the recipe does not name any weights.
void check_weights_given(const TrainConfig& config);

/// Determines the number of outputs: `model.num_classes`, else the number of outputs of the
/// weights, else that of the targets.
/// @param reader the dataset with these targets; null: there are none.
/// @param labels_matter whether to check that every label is a valid class.
/// @throws ConfigError if none of these numbers is known.
[[nodiscard]] std::int64_t count_eval_outputs(const Recipe& recipe, const data::BetonReader* reader,
                                              bool labels_matter);

/// Collective: every rank makes one.
/// @param labels the dataset whose classes are compared with those of the weights; null: none.
/// @param checkpoint the folder of a checkpoint whose weights are model.weights; empty: none.
/// @throws ConfigError if configuration, `labels`, weights or versions differ between the ranks.
[[nodiscard]] EvalModel make_eval_model(const ResolvedRun& run, const Registries& registries,
                                        RankSession& ranks, std::int64_t classes,
                                        const data::BetonReader* labels,
                                        const std::filesystem::path& checkpoint = {});

/// Runs an evaluation on the ranks that a recipe asks for: starts them and waits; or, if this
/// process is one of them, calls `body`, after which the ranks leave together.
/// @param command the arguments after the program's name, to start ranks with.
/// @return the exit code: that of `body`, or of the launch.
[[nodiscard]] int run_evaluation(const Recipe& recipe, const std::vector<std::string>& command,
                                 const std::function<int(const ResolvedRun&, RankSession&)>& body);

/// The positions, of `samples` in total, that a rank predicts: batch b belongs to rank b % world.
/// The batches are thus the same as in a run of a single rank.
[[nodiscard]] std::vector<std::uint64_t> positions_of_rank(std::uint64_t samples,
                                                           std::int64_t batch_size,
                                                           Communicator& ranks);

/// Warns, on rank 0, of the damaged samples that any rank's source has replaced. Collective.
void warn_of_replaced(const BatchSource* source, RankSession& ranks);

/// The samples of a dataset for the model. Borrows `reader`.
struct EvalSource {
  std::unique_ptr<BatchSource> source;
  /// Forward passes whose outputs are summed for each sample: 2 if the mirrored image is added.
  int passes = 1;
  /// Whether the first input is an image.
  bool images = true;
};
/// @throws ConfigError if the model does not accept such samples.
/// @param order null: as in the file.
[[nodiscard]] EvalSource open_eval_source(EvalModel& model, const data::BetonReader& reader,
                                          std::shared_ptr<const data::SampleOrder> order = nullptr);
/// Only the samples at these positions; no source if there are none.
[[nodiscard]] EvalSource open_eval_source(EvalModel& model, const data::BetonReader& reader,
                                          std::vector<std::uint64_t> positions);

}  // namespace precast::tools
