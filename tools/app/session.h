#pragma once

#include <ATen/core/Tensor.h>

#include <memory>
#include <string>
#include <vector>

#include "data/beton/reader.h"
#include "data/decode/jpeg_index.h"
#include "data/loader/memory_plan.h"
#include "data/order/order.h"
#include "framework/api/batch_source.h"
#include "framework/api/model.h"
#include "framework/engine/evaluator.h"
#include "framework/engine/train_step.h"
#include "framework/engine/weights.h"
#include "tools/app/recipe.h"
#include "tools/app/weights_check.h"

namespace precast::tools {

/// Replaces `training.device: auto` with the available device and prepares libtorch for it
/// (threads, cuDNN), for one of the `local_world` ranks of this host: they share its cores, and
/// each has its own GPU.
/// @throws DeviceError if the recipe asks for a GPU that does not exist.
[[nodiscard]] at::Device prepare_device(TrainConfig& config, int local_rank, int local_world);
/// training.cuda_graphs.
[[nodiscard]] engine::GraphMode graph_mode(const TrainConfig& config);

/// data.num_workers; if that is 0, its automatic value (data::loader_threads) for the device and
/// the ranks given to prepare_device().
[[nodiscard]] int loader_threads(const TrainConfig& config);

/// Opens the dataset of a key, in the mode of data.in_memory. @throws ConfigError if the key has no
/// value; DataError; IoError.
/// DataError; IoError.
[[nodiscard]] std::unique_ptr<data::BetonReader> open_dataset(std::string_view key,
                                                              const std::string& path,
                                                              const TrainConfig& config);

/// Makes the order of the training samples from data.order and its related keys. An automatic
/// data.shuffle_window_mb is written into the recipe as a number, because an epoch depends on it:
/// ranks compare it, and so does a resumed run. @throws ConfigError naming the key.
[[nodiscard]] std::shared_ptr<const data::SampleOrder> make_train_order(
    const data::BetonReader& reader, Recipe& recipe, const Registries& registries);

/// What reads a training set.
struct TrainData {
  std::shared_ptr<const data::SampleOrder> order;
  /// The index of its JPEGs; null: none.
  std::shared_ptr<data::JpegIndex> index;
};
[[nodiscard]] TrainData make_train_data(const data::BetonReader& reader, Recipe& recipe,
                                        const Registries& registries);

/// The largest label + 1. @throws DataError naming the sample if a label is negative, or not below
/// `limit` (0: no limit).
[[nodiscard]] std::int64_t count_classes(const data::BetonReader& reader, const TrainConfig& config,
                                         std::int64_t limit);

/// Draws the weights from `training.seed`, loads `model.weights` if given (check_weights() compares
/// them with the network and `data` first; to train, a last layer for another number of classes
/// keeps its drawn weights), freezes `training.freeze`, and moves the model to the device.
/// @param data may be null: the names of the classes are not compared.
[[nodiscard]] std::unique_ptr<Model> build_model(const Recipe& recipe, const TrainPlan& plan,
                                                 const Registries& registries, at::Device device,
                                                 WeightsUse use, const data::BetonReader* data);

/// Made-up batches of the fields that the recipe reads from the file; without a reader, of images
/// and labels.
[[nodiscard]] BatchMaker make_batch_maker(const data::BetonReader* reader,
                                          const data::Pipeline& pipeline, const Recipe& recipe,
                                          const TrainPlan& plan, at::Device device);

/// The parameters that are not frozen, in the model's order.
[[nodiscard]] std::vector<NamedTensor> trainable_parameters(const Model& model);

/// The type in which images are passed to the model: float16 on a GPU in fp16, else float32.
[[nodiscard]] at::ScalarType image_dtype(at::Device device, Precision precision);

/// Batches for training (last batch dropped) and for evaluation (in file order, all samples).
[[nodiscard]] std::unique_ptr<BatchSource> make_train_source(const data::BetonReader& reader,
                                                             const TrainData& data,
                                                             const Recipe& recipe,
                                                             const TrainPlan& plan,
                                                             at::Device device);
/// The loader's memory at the largest image size.
[[nodiscard]] data::MemoryPlan plan_train_memory(const data::BetonReader& reader,
                                                 const TrainData& data, const Recipe& recipe,
                                                 const TrainPlan& plan, at::Device device);
[[nodiscard]] std::unique_ptr<BatchSource> make_val_source(const data::BetonReader& reader,
                                                           const Recipe& recipe,
                                                           const TrainPlan& plan,
                                                           at::Device device);
/// Tries every image size of the plan once, if `training.preflight` asks for it, so that a run that
/// does not fit in memory fails before the first epoch. @throws Error with ExitCode::out_of_memory
void run_preflight(const Recipe& recipe, const TrainPlan& plan, const engine::StepParts& parts,
                   const engine::Evaluator& evaluator, const data::BetonReader& train,
                   const data::BetonReader& val, std::int64_t val_samples, at::Device device);
[[nodiscard]] engine::Evaluator make_evaluator(const Recipe& recipe, const TrainPlan& plan,
                                               at::Device device);

/// The model of `model.weights` and the data of `data.val_dataset`, for eval and predict.
struct EvalSession {
  std::unique_ptr<data::BetonReader> reader;
  std::unique_ptr<Model> model;
  std::unique_ptr<BatchSource> source;
  engine::Evaluator evaluator;
  TrainPlan plan;
};

/// The number of classes is `model.num_classes`, else the size of the weights' last layer
/// (`fc.bias`), else that of the labels.
/// @param labels_matter checks that every label is a valid class.
/// @throws ConfigError if no weights are given.
[[nodiscard]] EvalSession make_eval_session(Recipe& recipe, const Registries& registries,
                                            bool labels_matter);

}  // namespace precast::tools
