#pragma once

#include <cstdint>
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
#include "tools/app/run_argument.h"

namespace precast::tools {

/// The model of eval and predict: on its device, with the weights of `model.weights`. Borrows the
/// recipe.
struct EvalModel {
  ResolvedRun run;
  TrainPlan plan;
  std::unique_ptr<Model> model;
  engine::Evaluator evaluator;
  /// While these objects exist, the model's weights are the averages of a checkpoint's methods
  /// (ema, swa).
  std::vector<std::unique_ptr<Method::EvalGuard>> averages;
};

/// @throws ConfigError if the recipe does not name any weights.
void check_weights_given(const TrainConfig& config);

/// What a command does with a dataset.
enum class DatasetUse {
  /// Compares the predictions with the labels.
  evaluate,
  /// Predicts the samples; labels may be missing or wrong.
  predict,
  /// Only reads the names of the classes, for predictions of photos.
  name_classes,
};

/// Determines the number of outputs: `model.num_classes`, else the number of outputs of the
/// weights, else the number that the targets require.
/// @param reader the dataset with the targets; null: there are no targets.
/// @throws ConfigError if none of these numbers is known; CheckpointError if the dataset needs
/// another number of classes than the weights have; DataError if a label is invalid and the labels
/// are used.
[[nodiscard]] std::int64_t count_eval_outputs(const Recipe& recipe, const data::BetonReader* reader,
                                              DatasetUse use);

/// Builds the model and loads model.weights. Collective: every rank must call it.
/// @param labels the dataset whose classes are compared with the classes of the weights; null: no
/// comparison.
/// @param run_argument the run that model.weights belongs to, if any. Rank 0 warns about plug-ins
/// that have changed since that run.
/// @throws ConfigError if configuration, `labels`, weights or versions differ between the ranks.
[[nodiscard]] EvalModel make_eval_model(const ResolvedRun& run, const Registries& registries,
                                        RankSession& ranks, std::int64_t classes,
                                        const data::BetonReader* labels,
                                        const RunArgument& run_argument);

/// Runs an evaluation on the ranks that a recipe requests. If this process is one of the ranks,
/// calls `body`; then all ranks leave their group together. Otherwise, starts the ranks and waits
/// for them.
/// @param command the command line for ranks that it starts, without the program's name.
/// @param on_end called before a rank ends because of an error.
/// @return the exit code of `body` or of the launch.
[[nodiscard]] int run_evaluation(const Recipe& recipe, const std::vector<std::string>& command,
                                 const std::function<int(const ResolvedRun&, RankSession&)>& body,
                                 OnEnd on_end = {});

/// The positions in a dataset of `samples` samples that this rank predicts: batch b belongs to rank
/// b % world. The batches are therefore the same as in a run of a single rank.
[[nodiscard]] std::vector<std::uint64_t> positions_of_rank(std::uint64_t samples,
                                                           std::int64_t batch_size,
                                                           Communicator& ranks);

/// Collective. On rank 0, warns of the damaged samples that the sources of all ranks have replaced.
/// @param source null: this rank has no samples.
void warn_of_replaced(const BatchSource* source, RankSession& ranks);

/// The samples of a dataset for the model. Borrows the dataset.
struct EvalSource {
  std::unique_ptr<BatchSource> source;
  /// Forward passes whose outputs are summed for each sample: 2 if the mirrored image is added.
  int passes = 1;
  /// Whether the first input is an image.
  bool images = true;
  /// The number of dimensions of the outputs.
  std::int64_t output_dims = 0;
};
/// Opens a dataset as batches for the model.
/// @param use evaluate: batches have the targets of the recipe; predict: batches have no targets.
/// @param order null: the order of the file.
/// @throws ConfigError if the model does not accept such samples.
[[nodiscard]] EvalSource open_eval_source(EvalModel& model, const data::BetonReader& reader,
                                          DatasetUse use,
                                          std::shared_ptr<const data::SampleOrder> order = nullptr);
/// Opens only the samples at these positions, for predictions. If `positions` is empty, the
/// `source` of the result is null.
[[nodiscard]] EvalSource open_eval_source(EvalModel& model, const data::BetonReader& reader,
                                          std::vector<std::uint64_t> positions);

}  // namespace precast::tools
