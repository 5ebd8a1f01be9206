#include "tools/app/train_run.h"

#include <ATen/Context.h>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <map>
#include <optional>
#include <utility>

#include "data/loader/loader.h"
#include "data/loader/preload.h"
#include "framework/core/archive/checkpoint_folder.h"
#include "framework/core/error.h"
#include "framework/core/log.h"
#include "framework/core/rng.h"
#include "framework/core/shell_word.h"
#include "framework/engine/stop_request.h"
#include "framework/engine/weights.h"
#include "framework/process/stop_signals.h"
#include "tools/app/graph_plan.h"
#include "tools/app/images_on_gpu.h"
#include "tools/app/outside_loading.h"
#include "tools/app/plan.h"
#include "tools/app/run_identity.h"
#include "tools/app/task.h"
#include "tools/report/event_sink.h"
#include "tools/report/run_record.h"

namespace precast::tools {
namespace {

using nlohmann::ordered_json;

engine::NonFinitePolicy nonfinite_policy(const TrainConfig& config) {
  if (config.training.on_nonfinite == "skip") return engine::NonFinitePolicy::skip;
  if (config.training.on_nonfinite == "restore") return engine::NonFinitePolicy::restore;
  return engine::NonFinitePolicy::stop;
}

/// Warns if the log of a resumed run lacks epochs that the run had finished when the checkpoint was
/// saved.
void warn_of_missing_epochs(const std::filesystem::path& run_folder, std::int64_t epochs_done) {
  if (epochs_done == 0) return;
  std::string missing;
  try {
    missing = missing_epochs(load_run(run_folder), epochs_done);
  } catch (const std::exception& error) {
    missing = error.what();
  }
  if (missing.empty()) return;
  log_warning("{}: {}. The log was truncated or removed. Reports lack the missing epochs",
              (run_folder / "log").string(), missing);
}

}  // namespace

TrainRun::TrainRun(const ResolvedRun& run, const Registries& registries, RankSession& ranks)
    : run_(run),
      ranks_(ranks),
      train_reader_(run.recipe.outside.empty() ? open_dataset("data.train_dataset", run.recipe)
                                               : nullptr),
      val_reader_(open_dataset("data.val_dataset", run.recipe)),
      train_data_(train_reader_ ? make_train_data(*train_reader_, run, registries) : TrainData{}),
      values_(resolved_values(run.recipe, dataset_with_batch_fields(), train_data_)),
      parts_(run, checked_plan(registries), registries, ranks, &dataset_with_batch_fields(),
             val_reader_.get()),
      train_source_(open_train_source()),
      val_source_(open_val_source()),
      identity_(identity()),
      folder_(open_run_folder()) {
  if (run.config().data.in_memory == 2) {
    if (train_reader_) data::preload(*train_reader_, &StopSignals::requested());
    data::preload(*val_reader_, &StopSignals::requested());
  }
  // The random numbers of a forward pass (dropout, stochastic depth) differ from rank to rank;
  // weights do not.
  at::manual_seed(derived_seed(static_cast<std::uint64_t>(run.config().training.seed), "forward") +
                  static_cast<std::uint64_t>(ranks_.communicator().rank()));
  faults_before_ = major_faults();
}

std::int64_t TrainRun::train_samples() const {
  return train_reader_ ? static_cast<std::int64_t>(train_data_.order->size())
                       : outside_samples(run_);
}

std::unique_ptr<BatchSource> TrainRun::open_train_source() const {
  if (!train_reader_)
    return make_outside_train_source(dataset_with_batch_fields(), run_, parts_.plan());
  check_images_on_gpu(*train_reader_, run_.recipe.train_pipeline, run_,
                      parts_.plan().image_size_px);
  return make_train_source(*train_reader_, train_data_, run_, parts_.plan());
}

std::unique_ptr<BatchSource> TrainRun::open_val_source() const {
  data::LoaderOptions options = val_loader_options(*val_reader_, run_);
  options.plan_images = keeps_images_on_gpu(run_);
  options.cancel_copy = &StopSignals::requested();
  return make_val_source(*val_reader_, run_, parts_.plan(), options);
}

ordered_json TrainRun::identity() const {
  ordered_json identity = describe_identity(values_, parts_.plan(), dataset_with_batch_fields(),
                                            *val_reader_, parts_.model());
  identity["plan.best_metric"] = run_.recipe.best.name;
  identity["plan.precision"] = precision_name(parts_.plan().precision);
  if (!train_reader_) identity["dataset.train"] = outside_identity(run_);
  return identity;
}

TrainPlan TrainRun::checked_plan(const Registries& registries) const {
  const Recipe& recipe = run_.recipe;
  const std::int64_t classes = count_outputs(
      dataset_with_batch_fields(), recipe, recipe.train_pipeline, recipe.config.model.num_classes);
  if (!train_reader_) return make_plan(run_, registries, train_samples(), classes);
  check_val_dataset(*train_reader_, *val_reader_, run_, classes, /*warns=*/ranks_.is_rank_zero());
  TrainPlan plan = make_plan(run_, registries, train_samples(), classes);
  if (const std::string reason =
          no_steps_reason(plan, train_samples(), train_reader_->path().string());
      !reason.empty())
    throw ConfigError(reason);
  return plan;
}

engine::RunFolder TrainRun::open_run_folder() {
  // All ranks must agree on everything before any rank writes a file.
  check_same_identity(ranks_.communicator(), identity_);
  share_index(train_data_, run_, ranks_.communicator());
  std::vector<at::Tensor> state;
  for (const NamedTensor& entry : parts_.model().state()) state.push_back(entry.tensor.detach());
  ranks_.communicator().broadcast(state, /*root=*/0);
  std::optional<engine::RunFolder> locked;
  const TrainConfig& config = run_.config();
  if (ranks_.is_rank_zero()) {
    locked.emplace(config.logging.folder, run_id_of(config), parts_.plan().model.arch,
                   /*go_on=*/config.checkpoint.resume != "never");
  }
  const std::string path = locked ? locked->path().string() : "";
  std::filesystem::path agreed = ranks_.communicator().all_gather(path).front();
  return locked ? std::move(*locked) : engine::RunFolder(std::move(agreed));
}

engine::CheckpointOptions TrainRun::checkpoint_options() const {
  const auto& keys = run_.config().checkpoint;
  const std::string& window = run_.config().data.shuffle_window_mb;
  const bool spread = ranks_.communicator().world() > 1;
  return {.folder = folder_ / "checkpoints",
          .every_steps = keys.every_steps,
          .every_epochs = keys.every_epochs,
          .keep_last = keys.keep_last,
          .keep_best = keys.keep_best,
          .keep_finished = keys.keep_finished,
          .resume = keys.resume != "never",
          .allow_precision_change = keys.resume == "force",
          // If the window is given in MiB, the batch size does not change its number of pages.
          .order_depends_on_batch_size =
              train_data_.window_pages > 0 && (window == "auto" || window == "ffcv"),
          .has_same_evaluation =
              [this](const ordered_json& saved) {
                return tools::has_same_evaluation(saved, identity_);
              },
          .max_threads = run_.max_threads,
          .sharded_optimizer = spread && run_.config().dist.zero,
          .partial_optimizer = spread && (run_.config().dist.zero ||
                                          run_.config().dist.variable_update == "parameter_server"),
          .model_spec = parts_.weights_spec()};
}

void TrainRun::check_identity(const ordered_json& saved) {
  keep_weights_key(saved);
  const auto differences = compare_identities(resumable_part(saved), resumable_part(identity_));
  if (differences.empty()) return;
  const std::string text = fmt::format("\n  {}", fmt::join(differences, "\n  "));
  if (run_.config().checkpoint.resume == "force") {
    if (ranks_.is_rank_zero())
      log_warning("the checkpoint (there) belongs to another run, not to this one (here):{}", text);
    return;
  }
  throw CheckpointError(fmt::format(
      "{}: expected checkpoints of this run, but the checkpoints (there) differ from the run "
      "(here):{}\nSet the same values, another logging.run_id, or --checkpoint.resume=force",
      (folder_ / "checkpoints").string(), text));
}

void TrainRun::keep_weights_key(const ordered_json& saved) {
  constexpr const char* kKey = "model.weights";
  const auto before = saved.find(kKey);
  if (before == saved.end() || *before == identity_.at(kKey)) return;
  const bool given = run_.recipe.origins.contains(kKey);
  if (given && ranks_.is_rank_zero()) {
    log_warning("{}: model.weights: has no effect, because the run is resumed from a checkpoint",
                run_.recipe.origin_of(kKey).text());
  }
  identity_[kKey] = values_[kKey] = *before;
}

int TrainRun::run(bool json) {
  if (stops_before_training()) return static_cast<int>(ExitCode::preempted);
  std::unique_ptr<engine::JsonLinesLog> log;
  std::unique_ptr<EventSink> events;
  std::vector<MetricSink*> sinks;
  if (ranks_.is_rank_zero()) {
    log = std::make_unique<engine::JsonLinesLog>(folder_ / "log");
    events = std::make_unique<EventSink>(folder_ / kEventFile);
    // Checkpoints store the positions of the sinks in this order.
    sinks = {log.get(), events.get()};
    log_run_start(reported());
  }
  const engine::Evaluator evaluator = make_evaluator(run_, parts_.plan());
  engine::Checkpointer checkpointer(
      checkpoint_options(),
      {parts_.model(), parts_.optimizer(), run_.recipe.methods, ranks_.communicator(), run_.device},
      identity_, [this, &checkpointer](const ordered_json& saved) {
        check_identity(saved);
        checkpointer.set_identity(identity_);
      });
  engine::Watchdog watchdog(
      std::chrono::seconds(run_.config().training.stall_timeout_s),
      [this] {
        return fmt::format(
            "Waited {:.0f} s for training batches and {:.0f} s for validation "
            "batches so far",
            train_source_.seconds_waited_so_far(), val_source_.seconds_waited_so_far());
      },
      [this](const std::string& cause) { ranks_.claim_failure(cause); });
  engine::Trainer trainer(parts_.plan(),
                          {.model = parts_.model(),
                           .loss = parts_.loss(),
                           .optimizer = parts_.optimizer(),
                           .methods = run_.recipe.methods,
                           .train_source = train_source_,
                           .val_source = val_source_,
                           .evaluator = evaluator,
                           .ranks = ranks_.communicator(),
                           .sync = parts_.sync(),
                           .sinks = sinks,
                           .checkpointer = &checkpointer,
                           .watchdog = &watchdog},
                          {.device = run_.device,
                           .evaluate_each_epoch = run_.config().logging.log_level > 0,
                           .log_every = run_.config().logging.every,
                           .on_nonfinite = nonfinite_policy(run_.config()),
                           .graphs = graph_mode(run_.config()),
                           .best = run_.recipe.best});
  // ranks_.run() reports an error while the objects above still exist: their destructors could wait
  // for dead ranks, and the error would never be printed.
  return ranks_.run([&] {
    const engine::TrainSummary summary = train(trainer, evaluator);
    if (summary.final_eval) finish(trainer, summary, json);
    summary.final_eval ? checkpointer.finish_run() : checkpointer.finish();
    ranks_.leave();
    return static_cast<int>(summary.final_eval ? ExitCode::done : ExitCode::preempted);
  });
}

engine::TrainSummary TrainRun::train(engine::Trainer& trainer, const engine::Evaluator& evaluator) {
  run_preflight(run_, parts_.plan(), parts_.step_parts(), evaluator, dataset_with_batch_fields(),
                *val_reader_, val_source_.samples());
  trainer.start();
  // These files are written only now, after start() has checked that the checkpoint belongs to this
  // run.
  if (ranks_.is_rank_zero()) {
    // With `force`, keys may differ from those with which a finished run was trained. In this case
    // nothing is trained, so the files that describe the training are kept.
    const bool keeps = run_.config().checkpoint.resume == "force" && trainer.global_step() > 0 &&
                       trainer.epochs_done() >= parts_.plan().epochs;
    if (!keeps || !std::filesystem::exists(folder_ / "params.json")) folder_.write_params(values_);
    if (!keeps || !std::filesystem::exists(folder_ / "run.json")) write_run_json(reported());
    warn_of_missing_epochs(folder_.path(), trainer.epochs_done());
  }
  engine::TrainSummary summary = trainer.run();
  if (!summary.final_eval && ranks_.is_rank_zero()) {
    write_report_page(folder_);
    log_stopped(/*saved=*/true);
  }
  return summary;
}

bool TrainRun::stops_before_training() {
  // A signal may have reached one rank, but not yet the other ranks.
  if (!engine::any_rank_requested_stop(ranks_.communicator())) return false;
  if (ranks_.is_rank_zero()) log_stopped(!find_checkpoints(folder_ / "checkpoints").empty());
  ranks_.leave();
  return true;
}

void TrainRun::log_stopped(bool saved) const {
  // logging.run_id may contain slashes, so it can be more than the name of the folder.
  const std::string given = run_id_of(run_.config());
  log_info(
      "=> stopped by a signal: {}. Resume the run with --checkpoint.resume=auto "
      "--logging.run_id={}",
      saved ? fmt::format("a checkpoint is in {}", (folder_ / "checkpoints").string())
            : "there is no checkpoint yet",
      shell_word(given.empty() ? folder_.path().filename().string() : given));
}

void TrainRun::finish(engine::Trainer& trainer, const engine::TrainSummary& summary, bool json) {
  trainer.in_eval_scope([&] {
    if (ranks_.is_rank_zero()) {
      engine::save_model_weights(parts_.model(), folder_ / "final_weights", parts_.weights_spec());
    }
  });
  if (ranks_.is_rank_zero()) report_results(reported(), summary, trainer.global_step(), json);
  // No rank leaves before rank 0 has written the results.
  static_cast<void>(ranks_.communicator().all_gather("done"));
}

ReportedRun TrainRun::reported() const {
  return {.run = run_,
          .parts = parts_,
          .train = train_reader_.get(),
          .val = *val_reader_,
          .train_data = train_data_,
          .train_samples = train_samples(),
          .world = ranks_.communicator().world(),
          .folder = folder_,
          .faults_before = faults_before_};
}

}  // namespace precast::tools
