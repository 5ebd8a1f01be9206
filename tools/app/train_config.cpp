#include "tools/app/train_config.h"

#include "tools/cli/custom_fields.h"

namespace precast::tools {
namespace {

constexpr double kMaxImagePx = 8192;
constexpr double kMaxThreads = 4096;

void add_order_keys(Schema& schema, TrainConfig& config, const Registries& registries) {
  auto& data = config.data;
  schema.add("data.order", &data.order, "order of the training samples")
      .choices(registries.orders.names());
  schema.add(
      "data.shuffle_window_mb", &data.shuffle_window_mb,
      "with order quasi_random, size in MiB of the pages from which samples are drawn at the same "
      "time; auto: 2 pages per sample of the global batch, but at most a quarter of the memory "
      "limit; ffcv: 2 pages per sample of the global batch");
  schema.add("data.subset", &data.subset,
             "training samples to use: N, the first N samples; A:B, a range; random:N, the same "
             "draw in every run; or \"@FILE\", the samples that a file lists, one number or range "
             "A:B per line; empty: all");
  schema.add(
      "data.filter", &data.filter,
      "training samples to use, selected by an expression over number fields and image sizes, such "
      "as label < 10, label in [1, 2] and not width <= 300, or label == \"dogs\"");
  schema
      .add("data.repeats", &data.repeats,
           "number of times that each sample occurs in a training epoch")
      .min(1)
      .max(1000);
}

void add_data_keys(Schema& schema, TrainConfig& config, const Registries& registries) {
  auto& data = config.data;
  schema.add("data.train_dataset", &data.train_dataset,
             ".beton file to train on, or its http:// or https:// URL; several, such as "
             "[a.beton, b.beton], are read as the file that `precast merge` would write; "
             "ring://NAME, the batches that `precast serve` or another program passes through a "
             "ring; or zmq://HOST:PORT, the batches that another program sends");
  schema.add("data.val_dataset", &data.val_dataset,
             ".beton file to evaluate on; several are read as one");
  schema
      .add("data.num_workers", &data.num_workers,
           "loader threads of each rank; 0: the rank's share of the host's usable cores, minus two "
           "on a GPU")
      .min(0)
      .max(kMaxThreads);
  schema
      .add(
          "data.in_memory", &data.in_memory,
          "how the dataset is read; 1: through the page cache, which all processes share; 2: the "
          "complete file is loaded before training starts; 0: pages are read into a cache of "
          "data.cache_mb, for files larger than memory; gpu: all images, stored as raw pixels, are "
          "copied to each rank's GPU before the first epoch, and cropped, resized and flipped "
          "there")
      .min(0)
      .max(2)
      .word("gpu", kImagesOnGpu);
  schema
      .add("data.cache_mb", &data.cache_mb,
           "with in_memory 0, size of the cache for pages of the training set, in MiB per process; "
           "0: the rank's share of a quarter of the memory limit, but at least what "
           "data.shuffle_window_mb needs")
      .min(0)
      .max(1e9);
  schema.add("data.direct_io", &data.direct_io,
             "bypass the page cache; only with data.in_memory 0");
  schema.add("data.cache_dir", &data.cache_dir,
             "folder on a local disk for the fetched parts of remote datasets; empty: "
             "$XDG_CACHE_HOME/precast or ~/.cache/precast");
  schema
      .add("data.http_retry_s", &data.http_retry_s,
           "seconds for which a request to a dataset server is retried if there is no response; "
           "must be less than training.stall_timeout_s")
      .min(0)
      .max(86400);
  schema
      .add("data.on_corrupt", &data.on_corrupt,
           "what to do with samples that cannot be decoded; fail: end the run; replace: use the "
           "next intact sample of the file instead, and list the replaced samples at the end")
      .choices({"fail", "replace"});
  schema.add("data.verify", &data.verify,
             "verify the checksum of every value that is read, if the file has checksums");
  schema.add("data.fields", &data.fields, kCustomFieldHelp);
  schema
      .add("data.jpeg_dct", &data.jpeg_dct,
           "inverse DCT of JPEGs: ifast, as in FFCV; islow, more accurate, as in Pillow and "
           "torchvision")
      .choices({"ifast", "islow"});
  schema
      .add("data.jpeg_index_mb", &data.jpeg_index_mb,
           "memory in MiB for the JPEG index, which allows crops to be decoded without the data "
           "before them; it is built in the first epoch and shared by the ranks on a host; -1: a "
           "sixteenth of the memory limit; a sidecar from `precast index` is always used")
      .min(-1)
      .max(1e9);
  schema.add("data.batches_ahead", &data.batches_ahead, "number of batches to load in advance")
      .min(1)
      .max(1024);
  schema
      .add("data.batches_per_epoch", &data.batches_per_epoch,
           "number of training batches in an epoch, if another program makes them")
      .min(0)
      .max(1e9);
  schema
      .add("data.producer_timeout_s", &data.producer_timeout_s,
           "seconds to wait for a batch that another program makes, before the run ends with an "
           "error; must be less than training.stall_timeout_s")
      .above(0)
      .max(1e6);
  add_order_keys(schema, config, registries);
  schema.add("data.inputs", &data.inputs,
             "outputs of the pipeline that the model reads, by name; empty: the first image");
  schema.add_alias("data.image_field", "data.inputs");
  schema.add("data.targets", &data.targets,
             "outputs of the pipeline that the loss reads, by name; empty: the first integer "
             "output");
  schema.add_alias("data.label_field", "data.targets");
  schema.add_dead("data.gpu", "has no effect: the device is training.device");
  schema.add_dead("uid", "has no effect: the run folder is named by logging.run_id");
  schema.add("pipeline.train", &config.train_pipeline, "transforms of training images");
  schema.add("pipeline.val", &config.val_pipeline, "transforms of evaluation images");
}

void add_model_keys(Schema& schema, TrainConfig& config, const Registries& registries) {
  auto& model = config.model;
  schema.add("model.arch", &model.arch, "architecture").choices(registries.models.names());
  schema.add("model.pretrained", &model.pretrained, "must be false; set model.weights instead");
  schema.add("model.weights", &model.weights,
             "weights to start from or to evaluate: .safetensors, or PyTorch's .pt");
  schema
      .add("model.weights_check", &model.weights_check,
           "what happens if the weights are for a different network or, in eval and predict, for "
           "different data; on: an error; off: only a warning")
      .choices({"on", "off"});
  schema
      .add(
          "model.num_classes", &model.num_classes,
          "number of outputs; 0: largest label of the training set + 1, or the number of its class "
          "names if that is larger; for other targets, the number of values of the target; "
          "required for masks and for losses without targets")
      .min(0)
      .max(kMaxClasses);
  schema.add("model.in_channels", &model.in_channels, "channels of images: 3 (RGB) or 1 (grey)");
  schema
      .add("model.kernels", &model.kernels,
           "kernels for training on a GPU; reference: libtorch's ops; fused: one op for a batch "
           "norm and the addition, ReLU or max pool after it, and precast's kernels for BlurPool "
           "and for padding RGB images; auto: fused on GPUs on which these kernels have been "
           "tested (compute capability 9.0), otherwise reference")
      .choices({"auto", "reference", "fused"});
  schema.add("model.params", &model.params, "options of the architecture");
  auto& resolution = config.resolution;
  schema
      .add("resolution.min_res", &resolution.min_res,
           "training image size (side of the square) at the start, px")
      .min(1)
      .max(kMaxImagePx);
  schema.add("resolution.max_res", &resolution.max_res, "training image size at the end, px")
      .min(1)
      .max(kMaxImagePx);
  schema
      .add("resolution.end_ramp", &resolution.end_ramp,
           "epoch at which the image size reaches max_res")
      .min(0);
  schema
      .add("resolution.start_ramp", &resolution.start_ramp,
           "epoch after which the image size begins to grow from min_res")
      .min(0);
}

void add_schedule_keys(Schema& schema, TrainConfig& config, const Registries& registries) {
  auto& lr = config.lr;
  schema.add("lr.lr", &lr.lr, "highest learning rate, for the global batch").min(0);
  schema
      .add("lr.reference_batch_size", &lr.reference_batch_size,
           "if above 0: lr.lr applies to this many samples per step and is scaled to the global "
           "batch")
      .min(0);
  schema
      .add("lr.lr_schedule_type", &lr.lr_schedule_type,
           "shape of the learning rate over the epochs")
      .choices(registries.schedules.names());
}

void add_training_keys(Schema& schema, TrainConfig& config, const Registries& registries) {
  auto& training = config.training;
  schema.add("training.epochs", &training.epochs, "passes over the training set").min(0).max(1e6);
  schema.add("training.batch_size", &training.batch_size, "samples per step on each rank")
      .min(1)
      .max(1e6);
  schema
      .add("training.global_batch_size", &training.global_batch_size,
           "samples per step over all ranks; replaces batch_size; 0: batch_size on each rank")
      .min(0)
      .max(1e9);
  schema
      .add("training.loss", &training.loss,
           "loss; it determines the kind of targets; methods such as bce_loss may set another loss")
      .choices(registries.losses.names());
  schema.add("training.optimizer", &training.optimizer, "optimiser")
      .choices(registries.optimizers.names());
  schema
      .add("training.label_smoothing", &training.label_smoothing,
           "fraction of the probability that is spread over all classes; sets "
           "loss.label_smoothing, unless the recipe gives that key")
      .min(0)
      .below(1);
  schema.add("training.use_blurpool", &training.use_blurpool, "antialias strided convolutions");
  schema.add("training.channels_last", &training.channels_last,
             "store images and weights channels last");
  schema.add_dead("training.bn_wd",
                  "has no effect, as in ffcv-imagenet's script: see optimizer.decay_groups");
  schema.add("methods", &config.methods, "methods, in the order in which they are applied");
}

void add_step_keys(Schema& schema, TrainConfig& config) {
  auto& training = config.training;
  schema.add("training.eval_only", &training.eval_only, "evaluate model.weights and stop");
  schema.add("training.distributed", &training.distributed, "train on dist.world_size ranks");
  schema.add("training.seed", &training.seed, "seed of weights, order and augmentation").min(0);
  schema.add("training.device", &training.device, "where to train")
      .choices({"auto", "cpu", "cuda"});
  schema
      .add("training.precision", &training.precision,
           "precision of the forward and backward passes; auto: fp16 on a GPU, fp32 on a CPU")
      .choices({"auto", "fp32", "fp16", "bf16"});
  schema
      .add(
          "training.micro_batches", &training.micro_batches,
          "backward passes per step (gradient accumulation), for batches that do not fit in memory")
      .min(1)
      .max(1e6);
  schema.add("training.freeze", &training.freeze,
             "parameters that are not trained, given by the names of parameters or of modules that "
             "contain them; the running statistics of frozen batch norms are still updated");
  schema
      .add("training.on_nonfinite", &training.on_nonfinite,
           "what to do if the loss or, with skip, a gradient is NaN or infinite: stop, skip the "
           "step, or restore a checkpoint and halve the learning rate")
      .choices({"stop", "skip", "restore"});
  schema
      .add("training.preflight", &training.preflight,
           "try every image size before the first epoch, so that a size that does not fit in "
           "memory fails immediately; auto: only on a GPU")
      .choices({"auto", "on", "off"});
  schema
      .add("training.cuda_graphs", &training.cuda_graphs,
           "replay a step's kernels as one CUDA graph; on: the forward and backward passes, on a "
           "single GPU; auto: the same, for small batches in fp16 or bf16; step: the whole step "
           "with the optimiser if it can be recorded, else as on (with several ranks: no graph)")
      .choices({"auto", "on", "off", "step"});
  schema
      .add("training.stall_timeout_s", &training.stall_timeout_s,
           "seconds without progress after which the run prints the stacks of all threads and ends")
      .min(1)
      .max(1e6);
}

void add_run_keys(Schema& schema, TrainConfig& config) {
  auto& validation = config.validation;
  schema
      .add("validation.batch_size", &validation.batch_size,
           "samples per evaluation step on each rank")
      .min(1)
      .max(1e6);
  schema.add("validation.resolution", &validation.resolution, "evaluation image size, px")
      .min(1)
      .max(kMaxImagePx);
  schema.add("validation.lr_tta", &validation.lr_tta, "add the logits of the mirrored image");
  schema.add("validation.metrics", &validation.metrics,
             "metrics to report in addition to the loss and, for class labels, top-1 and top-5, "
             "such as [{top_k: {k: 3}}]; not given: the usual metrics for the loss");
  schema.add(
      "validation.best_metric", &validation.best_metric,
      "metric that determines the best checkpoint: top_1, top_5, val_loss or one of "
      "validation.metrics; empty: top_1 for class labels, else the first metric, else val_loss");
  auto& logging = config.logging;
  schema.add("logging.folder", &logging.folder, "folder in which run folders are created");
  schema.add("logging.run_id", &logging.run_id,
             "name of the run folder; empty: date, model and a random part");
  schema
      .add("logging.log_level", &logging.log_level,
           "when to evaluate; 0: only at the end; 1 or 2: after each epoch")
      .min(0)
      .max(2);
  schema.add("logging.every", &logging.every, "log loss and lr every N steps; 0: never").min(0);
  auto& dist = config.dist;
  schema.add("dist.world_size", &dist.world_size, "number of ranks").min(1).max(1e5);
  schema.add("dist.address", &dist.address, "host of rank 0");
  schema.add("dist.port", &dist.port, "port of rank 0");
  schema.add("dist.nproc", &dist.nproc,
             "processes to start on this host: auto (one per GPU) or a number; empty: none");
  schema
      .add("dist.variable_update", &dist.variable_update,
           "how ranks update parameters; replicated: average the gradients during the backward "
           "pass; allreduce_after_backward: average them after it; parameter_server: rank 0 "
           "updates and sends the parameters")
      .choices({"replicated", "allreduce_after_backward", "parameter_server"});
  schema
      .add("dist.grad_compression", &dist.grad_compression,
           "data type in which ranks exchange gradients")
      .choices({"none", "fp16", "bf16"});
  schema.add("dist.zero", &dist.zero, "spread the optimiser's state over the ranks (ZeRO-1)");
  schema.add("dist.sync_bn", &dist.sync_bn, "compute batch statistics over all ranks");
  schema
      .add("dist.timeout_s", &dist.timeout_s,
           "maximum duration of a collective operation, in seconds")
      .min(1)
      .max(1e6);
  schema
      .add("dist.join_timeout_s", &dist.join_timeout_s,
           "maximum time for the ranks to connect to each other, in seconds")
      .min(1)
      .max(1e6);
}

void add_checkpoint_keys(Schema& schema, TrainConfig& config) {
  auto& checkpoint = config.checkpoint;
  schema
      .add("checkpoint.resume", &checkpoint.resume,
           "whether to resume the run logging.run_id; auto: from its newest checkpoint, or start "
           "the run if there is none; force: the same, even if the configuration differs")
      .choices({"never", "auto", "force"});
  schema
      .add("checkpoint.every_steps", &checkpoint.every_steps,
           "save every N steps, and after the last epoch; 0: never")
      .min(0);
  schema
      .add("checkpoint.every_epochs", &checkpoint.every_epochs,
           "save every N epochs, and after the last one; 0: never")
      .min(0);
  schema.add("checkpoint.keep_last", &checkpoint.keep_last, "number of newest checkpoints to keep")
      .min(1)
      .max(1e6);
  schema
      .add("checkpoint.keep_best", &checkpoint.keep_best,
           "number of checkpoints with the best values of validation.best_metric to keep; only "
           "checkpoints saved at the end of an epoch have a value")
      .min(0)
      .max(1e6);
  schema
      .add("checkpoint.keep_finished", &checkpoint.keep_finished,
           "number of newest checkpoints to keep once the run has finished; at most keep_last")
      .min(1)
      .max(1e6);
}

}  // namespace

const PartSection kOptimizerSection{
    .selector = "training.optimizer",
    .prefix = "optimizer.",
    .renamed = {{"momentum", "training.momentum"}, {"weight_decay", "training.weight_decay"}},
    .published = {"momentum", "weight_decay"}};
const PartSection kOrderSection{
    .selector = "data.order",
    .prefix = "order.",
    .renamed = {{"weights", "data.weights"}, {"weight_field", "data.weight_field"}}};
const PartSection kScheduleSection{.selector = "lr.lr_schedule_type",
                                   .prefix = "lr.",
                                   .published = {"lr_peak_epoch", "step_ratio", "step_length"}};
const PartSection kLossSection{.selector = "training.loss", .prefix = "loss."};

Schema make_train_schema(TrainConfig& config, PartSections& parts, const ChosenParts& chosen,
                         const Registries& registries) {
  Schema schema;
  add_model_keys(schema, config, registries);
  add_data_keys(schema, config, registries);
  add_schedule_keys(schema, config, registries);
  parts.add(schema, registries.orders, kOrderSection, chosen.order);
  parts.add(schema, registries.schedules, kScheduleSection, chosen.schedule);
  add_training_keys(schema, config, registries);
  parts.add(schema, registries.losses, kLossSection, chosen.loss);
  add_step_keys(schema, config);
  parts.add(schema, registries.optimizers, kOptimizerSection, chosen.optimizer);
  add_run_keys(schema, config);
  add_checkpoint_keys(schema, config);
  schema.add(
      "plugins", &config.plugins,
      "plug-ins to load, such as [my_model.so]; a path in a recipe is relative to the recipe's "
      "folder, a path on the command line to the current folder");
  return schema;
}

std::int64_t requested_ranks(const TrainConfig& config) {
  return config.training.distributed ? config.dist.world_size : 1;
}

std::int64_t rank_batch_size(const TrainConfig& config, std::int64_t ranks) {
  const std::int64_t global = config.training.global_batch_size;
  return global > 0 ? (global + ranks - 1) / ranks : config.training.batch_size;
}

}  // namespace precast::tools
