#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "data/beton/reader.h"
#include "data/decode/jpeg_index.h"
#include "data/loader/loader.h"
#include "data/loader/memory_plan.h"
#include "data/order/order.h"
#include "data/torch/batch_source.h"
#include "framework/api/batch_source.h"
#include "framework/api/communicator.h"
#include "framework/api/model.h"
#include "framework/engine/evaluator.h"
#include "framework/engine/train_step.h"
#include "framework/engine/weights.h"
#include "tools/app/resolved_run.h"
#include "tools/app/weights_check.h"

namespace precast::tools {

/// Opens the dataset that a key names: mapped into memory or, if data.in_memory is 0, for reading
/// its pages from disk (with data.direct_io, without the page cache). Several files are read as
/// one.
/// @throws ConfigError if the key has no value, or names a producer (Recipe::outside), or if files
/// give a label different names; DataError; IoError. With several files, the messages of
/// ConfigError and DataError begin with the key and its location.
[[nodiscard]] std::unique_ptr<data::BetonReader> open_dataset(std::string_view key,
                                                              const Recipe& recipe);

/// The key of the dataset that has the fields of training batches: the training set or, if another
/// program makes the batches, the validation set.
[[nodiscard]] std::string_view fields_key(const Recipe& recipe);

/// The order in which a training set is read, and its JPEG index.
struct TrainData {
  std::shared_ptr<const data::SampleOrder> order;
  /// The number of pages that are open at the same time in a quasi_random order, from
  /// data.shuffle_window_mb; 0 in other orders.
  std::uint64_t window_pages = 0;
  /// The JPEG index of the training set; null: none.
  std::shared_ptr<data::JpegIndex> index;
};
/// The order that data.order and its related keys select, without an index. @throws ConfigError
/// naming the key.
[[nodiscard]] TrainData make_train_order(const data::BetonReader& reader, const ResolvedRun& run,
                                         const Registries& registries);
/// Calls make_train_order() and adds the JPEG index.
/// @throws the errors of make_train_order()
[[nodiscard]] TrainData make_train_data(const data::BetonReader& reader, const ResolvedRun& run,
                                        const Registries& registries);

/// Lets the ranks on a host fill one JPEG index together. Collective; call it before batches are
/// read, on ranks with the same datasets. A rank that cannot share the index keeps its own, limited
/// to its share of the memory.
void share_index(const TrainData& data, const ResolvedRun& run, Communicator& ranks);

/// Every key of the recipe with its value, as a run records it. An automatic data.shuffle_window_mb
/// is recorded as a number. The order of an epoch depends on it, so ranks compare it with each
/// other, and a resumed run compares it with its checkpoint.
[[nodiscard]] nlohmann::ordered_json resolved_values(const Recipe& recipe,
                                                     const data::BetonReader& reader,
                                                     const TrainData& data);

/// The options of the order of the training samples, except the window of quasi_random. The label
/// field is the one that the loss reads.
[[nodiscard]] data::OrderOptions train_order_options(const Recipe& recipe,
                                                     const data::BetonReader& reader);

/// The outputs that the model and the loss of a recipe read.
[[nodiscard]] data::FieldChoice field_choice(const Recipe& recipe);

/// Checks the validation set of a training run: its labels must mean the same classes as those of
/// the training set, its targets must fit the loss, and with data.in_memory: gpu, the GPU must be
/// able to make its images.
/// @param classes the model's outputs, from count_outputs() of the training set.
/// @param warns whether to log class_warnings() and normalization_warning(). @throws ConfigError;
/// DataError
void check_val_dataset(const data::BetonReader& train, const data::BetonReader& val,
                       const ResolvedRun& run, std::int64_t classes, bool warns);

/// Builds the model with random weights from `training.seed`, loads `model.weights` if given, moves
/// the model to the device, and freezes the parameters of `training.freeze`. Before loading,
/// check_weights() compares the weights with the network and `data`. In training, a last layer for
/// a different number of classes keeps its random weights, and warn_of_averages() is called.
/// @param data null: the names of the classes are not compared.
/// @throws ConfigError for invalid options of the model or names in `training.freeze`;
/// CheckpointError or IoError for `model.weights`
[[nodiscard]] std::unique_ptr<Model> build_model(const ResolvedRun& run, const TrainPlan& plan,
                                                 const Registries& registries, WeightsUse use,
                                                 const data::BetonReader* data);

/// Synthetic batches with the fields that the recipe reads from the file; without a reader, with
/// images and labels.
[[nodiscard]] BatchMaker make_batch_maker(const data::BetonReader* reader,
                                          const data::Pipeline& pipeline, const ResolvedRun& run,
                                          const TrainPlan& plan);

/// Whether the first input of the batches for evaluation is an image.
[[nodiscard]] bool reads_images(const data::BetonReader& reader, const ResolvedRun& run,
                                const TrainPlan& plan);

/// The parameters that are not frozen, in the model's order.
[[nodiscard]] std::vector<NamedTensor> trainable_parameters(const Model& model);

/// The type in which images are passed to the model: on a GPU, float16 with fp16 and bfloat16 with
/// bf16; otherwise float32.
[[nodiscard]] at::ScalarType image_dtype(at::Device device, Precision precision);

/// The options of the loaders for training and evaluation, except for the normalisation of images,
/// which depends on the device. data.in_memory: gpu has no effect on them. @{
[[nodiscard]] data::LoaderOptions train_loader_options(const data::BetonReader& reader,
                                                       const TrainData& data,
                                                       const ResolvedRun& run);
[[nodiscard]] data::LoaderOptions val_loader_options(const data::BetonReader& reader,
                                                     const ResolvedRun& run);
/// @}

/// Batches for training (the last, incomplete batch is left out) and for evaluation (all samples).
[[nodiscard]] std::unique_ptr<BatchSource> make_train_source(const data::BetonReader& reader,
                                                             const TrainData& data,
                                                             const ResolvedRun& run,
                                                             const TrainPlan& plan);
/// The loader's memory for the largest image size.
[[nodiscard]] data::MemoryPlan plan_train_memory(const data::BetonReader& reader,
                                                 const TrainData& data, const ResolvedRun& run,
                                                 const TrainPlan& plan);
/// @param options val_loader_options(), possibly modified.
[[nodiscard]] std::unique_ptr<BatchSource> make_val_source(const data::BetonReader& reader,
                                                           const ResolvedRun& run,
                                                           const TrainPlan& plan,
                                                           const data::LoaderOptions& options);
/// Runs a step at every image size of the plan and an evaluation (engine::rehearse()) if
/// `training.preflight` requires it, so that a run that does not fit in memory fails before the
/// first epoch. @throws Error with ExitCode::out_of_memory
void run_preflight(const ResolvedRun& run, const TrainPlan& plan, const engine::StepParts& parts,
                   const engine::Evaluator& evaluator, const data::BetonReader& train,
                   const data::BetonReader& val, std::int64_t val_samples);
/// Whether an evaluation adds the outputs of the mirrored image: if validation.lr_tta is set and
/// the outputs are class scores, of an image or of each pixel. Other outputs, such as positions,
/// may differ between an image and its mirror image.
[[nodiscard]] bool mirrors_images(const Recipe& recipe);
[[nodiscard]] engine::Evaluator make_evaluator(const ResolvedRun& run, const TrainPlan& plan);

}  // namespace precast::tools
