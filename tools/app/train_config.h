#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "data/transforms/image_pipeline.h"
#include "framework/core/config/node.h"
#include "framework/core/config/schema.h"
#include "tools/app/part_sections.h"
#include "tools/app/registries.h"
#include "tools/cli/recipe_file.h"

namespace precast::tools {

/// More classes than this mean wrong labels, not a large dataset.
inline constexpr std::int64_t kMaxClasses = 10'000'000;

/// The value of data.in_memory that stands for `gpu`.
inline constexpr std::int64_t kImagesOnGpu = 3;

/// The keys of a recipe, section by section, with their defaults, except the options of parts
/// (PartSections). Keys that ffcv-imagenet also has keep its names. Not modified after
/// load_recipe(): values determined at the start of a run are in ResolvedRun.
struct TrainConfig {
  struct {
    std::string arch = "resnet18";
    bool pretrained = false;
    std::string weights;
    std::string weights_check = "on";
    std::int64_t num_classes = 0;
    std::int64_t in_channels = 3;
    std::string kernels = "auto";
    ConfigNode params;
  } model;
  struct {
    std::int64_t min_res = kDefaultTrainPx;
    std::int64_t max_res = kDefaultTrainPx;
    std::int64_t end_ramp = 0;
    std::int64_t start_ramp = 0;
  } resolution;
  struct {
    std::vector<std::string> train_dataset;
    std::vector<std::string> val_dataset;
    std::int64_t num_workers = 0;
    std::int64_t in_memory = 1;
    std::string jpeg_dct = "ifast";
    std::int64_t jpeg_index_mb = -1;
    std::int64_t batches_ahead = 3;
    std::int64_t batches_per_epoch = 0;
    double producer_timeout_s = 300;
    std::int64_t cache_mb = 0;
    bool direct_io = false;
    std::string cache_dir;
    double http_retry_s = 300;
    std::string on_corrupt = "fail";
    bool verify = false;
    std::vector<std::string> fields;
    std::string order = "random";
    std::string shuffle_window_mb = "auto";
    std::string subset;
    std::string filter;
    std::int64_t repeats = 1;
    std::vector<std::string> inputs;
    std::vector<std::string> targets;
  } data;
  struct {
    double lr = 0.5;
    std::string lr_schedule_type = "cyclic";
    std::int64_t reference_batch_size = 0;
  } lr;
  struct {
    std::string folder = "runs";
    std::string run_id;
    std::int64_t log_level = 1;
    std::int64_t every = 0;
  } logging;
  struct {
    std::int64_t batch_size = 512;
    std::int64_t resolution = kDefaultEvalPx;
    bool lr_tta = true;
    ConfigNode metrics;
    std::string best_metric;
  } validation;
  struct {
    bool eval_only = false;
    std::int64_t batch_size = 512;
    std::int64_t global_batch_size = 0;
    std::int64_t epochs = 30;
    std::string loss = "cross_entropy";
    std::string optimizer = "sgd";
    double label_smoothing = 0.1;
    bool distributed = false;
    bool use_blurpool = false;
    bool channels_last = true;
    std::int64_t seed = 0;
    std::string device = "auto";
    std::string precision = "auto";
    std::int64_t micro_batches = 1;
    std::vector<std::string> freeze;
    std::string on_nonfinite = "stop";
    std::string preflight = "auto";
    std::string cuda_graphs = "auto";
    std::int64_t stall_timeout_s = 1800;
  } training;
  struct {
    std::int64_t world_size = 1;
    std::string address = "localhost";
    std::string port = "12355";
    std::string nproc;
    std::string variable_update = "replicated";
    std::string grad_compression = "none";
    bool zero = false;
    bool sync_bn = false;
    std::int64_t timeout_s = 1800;
    std::int64_t join_timeout_s = 300;
  } dist;
  struct {
    std::string resume = "never";
    std::int64_t every_steps = 0;
    std::int64_t every_epochs = 1;
    std::int64_t keep_last = 2;
    std::int64_t keep_best = 1;
    std::int64_t keep_finished = 1;
  } checkpoint;
  /// Lists of parts and plug-ins, which load_recipe() parses.
  ConfigNode plugins;
  ConfigNode methods;
  ConfigNode train_pipeline;
  ConfigNode val_pipeline;
};

/// The number of ranks that training.distributed and dist.world_size request. dist.nproc, or the
/// program that starts the ranks, may choose another number.
[[nodiscard]] std::int64_t requested_ranks(const TrainConfig& config);
/// Samples per step on one of `ranks` ranks: at least 1. training.global_batch_size is divided by
/// `ranks` and rounded up; for training, check_for_ranks() requires that the division is exact.
[[nodiscard]] std::int64_t rank_batch_size(const TrainConfig& config, std::int64_t ranks);

/// The parts whose options are keys of the recipe.
extern const PartSection kOptimizerSection, kScheduleSection, kLossSection, kOrderSection;

/// The names of the parts that a recipe chose.
struct ChosenParts {
  std::string optimizer, schedule, loss, order;
};

/// The schema of a recipe, bound to `config` and, for the options of the chosen parts, to `parts`;
/// both must outlive it.
[[nodiscard]] Schema make_train_schema(TrainConfig& config, PartSections& parts,
                                       const ChosenParts& chosen, const Registries& registries);

}  // namespace precast::tools
