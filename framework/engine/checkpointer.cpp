#include "framework/engine/checkpointer.h"

#include <fmt/format.h>

#include <algorithm>
#include <future>
#include <map>
#include <nlohmann/json.hpp>
#include <string_view>
#include <utility>

#include "framework/core/archive/checkpoint_files.h"
#include "framework/core/archive/checkpoint_folder.h"
#include "framework/core/archive/checkpoint_names.h"
#include "framework/core/archive/safetensors.h"
#include "framework/core/archive/weight_names.h"
#include "framework/core/archive/weights_file.h"
#include "framework/core/dump_json.h"
#include "framework/core/error.h"
#include "framework/core/log.h"
#include "framework/engine/checkpoint_state.h"
#include "framework/engine/compute_threads.h"
#include "framework/engine/rank_state.h"
#include "framework/engine/state_archive.h"
#include "framework/engine/state_checks.h"

namespace precast::engine {
namespace {

using nlohmann::ordered_json;

constexpr int kMaxFailures = 3;
constexpr const char* kScaler = "grad_scaler";

/// A copy of the complete state, which another thread writes.
struct Snapshot {
  StateCopy model, optimizer, methods, ranks;
  std::string state;
  /// The value of kAveragesKey; nothing if averaging_method() returns nothing.
  std::optional<std::string> averages;
  std::int64_t step, best_since;
  std::optional<double> metric;

  [[nodiscard]] std::uint64_t bytes() const {
    return model.bytes() + optimizer.bytes() + methods.bytes() + ranks.bytes() + state.size();
  }
};

/// Removes all checkpoints except the best ones and the newest `last` ones.
void prune(const CheckpointOptions& options, std::int64_t last, std::int64_t best_since) {
  try {
    prune_checkpoints(options.folder, {.last = static_cast<std::size_t>(last),
                                       .best = static_cast<std::size_t>(options.keep_best),
                                       .best_since = best_since});
  } catch (const IoError& error) {
    log_warning("older checkpoints are kept: {}", error.what());
  }
}

/// Writes the weights under the same names as in final_weights.
void write_model(const std::filesystem::path& path, const Snapshot& snapshot,
                 const std::optional<WeightsSpec>& spec) {
  const auto blurred = spec ? spec->blurred : std::map<std::string, std::int64_t>();
  const FfcvNames names = ffcv_names(snapshot.model.records(), blurred, path.string());
  auto metadata = spec ? weights_metadata(*spec) : std::map<std::string, std::string>();
  if (snapshot.averages) metadata.emplace(kAveragesKey, *snapshot.averages);
  write_safetensors(path, names.records, metadata);
}

/// Restores what write_model() has written. Also accepts checkpoints of older versions, in which
/// blurred layers have the model's own names.
void restore_model(const std::filesystem::path& path, const std::vector<NamedTensor>& targets) {
  const WeightsFile file = load_weights(path, WrapperPrefixes::keep);
  const std::optional<WeightsSpec> spec = spec_of(file);
  restore_tensors(
      spec ? torchvision_names(file.records(), path.string(), spec).records : file.records(), path,
      targets, /*partial=*/false);
}

void write_snapshot(const Snapshot& snapshot, const CheckpointOptions& options) {
  CheckpointWriter writer(options.folder, snapshot.step, snapshot.bytes());
  const auto add = [&](const char* name, const StateCopy& copy) {
    write_safetensors(writer.path(name), copy.records(), {});
    writer.add_written(name);
  };
  write_model(writer.path(kModelFile), snapshot, options.model_spec);
  writer.add_written(kModelFile);
  add(kOptimizerFile, snapshot.optimizer);
  add(kMethodsFile, snapshot.methods);
  add(kRanksFile, snapshot.ranks);
  writer.add(kStateFile, std::as_bytes(std::span(snapshot.state)));
  writer.commit(snapshot.metric);
  prune(options, options.keep_last, snapshot.best_since);
}

}  // namespace

class Checkpointer::Impl {
 public:
  Impl(CheckpointOptions options, CheckpointParts parts, ordered_json identity, IdentityCheck check)
      : options_(std::move(options)),
        parts_(parts),
        checks_(parts),
        identity_(std::move(identity)),
        check_(std::move(check)) {}

  ~Impl() {
    if (writing_.valid()) writing_.wait();
  }

  void attach(Stateful* scaler, std::vector<MetricSink*> sinks) {
    scaler_ = scaler;
    sinks_ = std::move(sinks);
    checks_.start();
  }

  [[nodiscard]] const CheckpointOptions& options() const { return options_; }

  bool save(const TrainState& state, std::optional<double> metric, bool complete) {
    checks_.check_unchanged();
    const bool finite = checks_.finite(state.loss_sum);
    if (parts_.ranks.begin_sum(finite ? 0 : 1)->wait() > 0) return false;
    checks_.compare_ranks();
    wait_for_write();
    if (!complete) throw_if_saves_fail();
    best_since_ = state.best_since;
    const std::vector<NamedTensor> optimizer =
        options_.sharded_optimizer
            ? gather_tensors(parts_.optimizer.state().tensors, parts_.ranks, parts_.device)
            : parts_.optimizer.state().tensors;
    const std::vector<NamedTensor> ranks = gather_rank_tensors(state, parts_.ranks, parts_.device);
    const std::vector<int> threads = gather_compute_threads(parts_.ranks);
    const std::optional<std::string> averages = averaging_method();
    if (!is_rank_zero()) return true;
    if (!metric && restored_ && restored_->step == state.global_step) metric = restored_->metric;
    auto snapshot = std::make_shared<Snapshot>(
        Snapshot{StateCopy(parts_.model.state()), StateCopy(optimizer), StateCopy(method_tensors()),
                 StateCopy(ranks), state_text(state, threads), averages, state.global_step,
                 state.best_since, metric});
    writing_ =
        std::async(std::launch::async, [this, snapshot] { write_snapshot(*snapshot, options_); });
    return true;
  }

  void finish() {
    wait_for_write("Older checkpoints are kept");
    // If the last write failed, the newest state is not on the disk, and there will be no later
    // write.
    const std::int64_t failed = parts_.ranks.begin_sum(failures_ > 0 ? 1 : 0)->wait();
    if (failed > 0)
      throw IoError(failures_ > 0 ? last_failure_
                                  : "checkpoints: expected rank 0 to save the last checkpoint, got "
                                    "an error. See its output");
  }

  void finish_run() {
    wait_for_write("The run is complete, and its results are written");
    // No rank exits before rank 0 has finished writing.
    static_cast<void>(parts_.ranks.begin_sum(0)->wait());
    if (is_rank_zero())
      prune(options_, std::min(options_.keep_finished, options_.keep_last), best_since_);
  }

  void set_identity(ordered_json identity) { identity_ = std::move(identity); }

  bool restore(TrainState& state) {
    wait_for_write();
    const std::filesystem::path folder = agree_on_folder();
    if (folder.empty()) return false;
    const ordered_json saved = read_state(folder);
    try {
      check_(saved.at("identity"));
      restore_parts(folder, saved);
      TrainState position = state;
      const bool same_evaluation =
          !options_.has_same_evaluation || options_.has_same_evaluation(saved.at("identity"));
      const double steps = restore_position(position_in(saved), position,
                                            options_.order_depends_on_batch_size, same_evaluation);
      restore_rank(folder, saved.at("world").get<int>(), steps, parts_.ranks, parts_.device,
                   position);
      state = position;
      best_since_ = state.best_since;
      if (!sinks_.empty()) rewind_sinks(saved);
      // Checkpoints of earlier versions do not have this value.
      const auto threads = saved.value("compute_threads", std::vector<int>{});
      if (parts_.device.is_cpu())
        restore_compute_threads(threads, options_.max_threads, parts_.ranks);
    } catch (const ordered_json::exception& error) {
      throw CheckpointError(fmt::format("{}: expected the state of a checkpoint, got: {}",
                                        (folder / kStateFile).string(), error.what()));
    }
    return true;
  }

  /// @throws CheckpointError if all checkpoints are damaged: starting over would empty the log
  void throw_if_all_damaged() const {
    if (!is_rank_zero()) return;
    std::error_code none;
    for (const auto& entry : std::filesystem::directory_iterator(options_.folder, none)) {
      if (const std::string name = entry.path().filename().string(); checkpoint_step(name)) {
        throw CheckpointError(fmt::format(
            "{}: expected an intact checkpoint, got only damaged ones, such as {}. Set another "
            "logging.run_id, or remove this `checkpoints` folder to train from the start",
            options_.folder.string(), name));
      }
    }
  }

  /// Discards the records of earlier attempts that ended before their first checkpoint, because
  /// they do not belong to this run.
  void start_over() {
    if (options_.resume) throw_if_all_damaged();
    for (MetricSink* sink : sinks_) sink->rewind(0);
  }

 private:
  [[nodiscard]] bool is_rank_zero() const { return parts_.ranks.rank() == 0; }

  /// Waits for the writing thread and handles its result. @param outcome what a failure means for
  /// the run
  void wait_for_write(std::string_view outcome = "Training continues; older checkpoints are kept") {
    if (!writing_.valid()) return;
    try {
      writing_.get();
      failures_ = 0;
    } catch (const std::exception& error) {
      ++failures_;
      last_failure_ = error.what();
      log_warning("checkpoint not saved: {}. {}.", last_failure_, outcome);
    }
  }

  void throw_if_saves_fail() {
    if (parts_.ranks.begin_sum(failures_ >= kMaxFailures ? 1 : 0)->wait() == 0) return;
    throw IoError(
        fmt::format("checkpoints: expected to save one of the last {}, got only failures. {}",
                    kMaxFailures, last_failure_));
  }

  /// The method whose averages are evaluated in place of the weights; empty if the weights
  /// themselves are evaluated; nothing if a method changes the weights in another way in its
  /// eval_scope().
  [[nodiscard]] std::optional<std::string> averaging_method() const {
    for (const NamedMethod& method : parts_.methods)
      if (method.method->evaluates_averages()) return method.name;
    for (const NamedMethod& method : parts_.methods)
      if (method.method->eval_scope(parts_.model) != nullptr) return std::nullopt;
    return "";
  }

  /// The tensors of the methods and of the scaler, named `<method>/<tensor>` and
  /// `grad_scaler/<tensor>`.
  std::vector<NamedTensor> method_tensors(bool with_scaler = true) {
    std::vector<NamedTensor> all;
    const auto add = [&](const std::string& name, Stateful& part) {
      for (NamedTensor& entry : part.state().tensors)
        all.push_back({name + "/" + entry.name, std::move(entry.tensor)});
    };
    each_part(add, with_scaler);
    return all;
  }

  void each_part(const std::function<void(const std::string&, Stateful&)>& action,
                 bool with_scaler = true) {
    for (const NamedMethod& method : parts_.methods) action(method.name, *method.method);
    if (with_scaler && scaler_ != nullptr) action(kScaler, *scaler_);
  }

  std::string state_text(const TrainState& state, const std::vector<int>& threads) {
    ordered_json counters = {{"optimizer", parts_.optimizer.state().counters}};
    each_part(
        [&](const std::string& name, Stateful& part) { counters[name] = part.state().counters; });
    auto sinks = ordered_json::array();
    auto sink_seconds = ordered_json::array();
    for (const MetricSink* sink : sinks_) {
      sinks.push_back(sink->position());
      sink_seconds.push_back(sink->seconds());
    }
    const ordered_json text = {{"format", kStateFormat},       {"world", parts_.ranks.world()},
                               {"compute_threads", threads},   {"position", position_of(state)},
                               {"counters", counters},         {"sinks", sinks},
                               {"sink_seconds", sink_seconds}, {"identity", identity_}};
    // The identity may contain paths that are not UTF-8.
    return dump_json(text, 2) + "\n";
  }

  /// Rank 0 searches for the newest checkpoint, and reads all its files once to verify them. The
  /// other ranks use the folder that rank 0 found.
  std::filesystem::path agree_on_folder() {
    std::string path;
    if (is_rank_zero()) {
      restored_ = latest_valid_checkpoint(options_.folder);
      if (restored_) path = restored_->path.string();
    }
    return parts_.ranks.all_gather(path).front();
  }

  void restore_parts(const std::filesystem::path& folder, const ordered_json& saved) {
    restore_model(folder / kModelFile, parts_.model.state());
    restore_tensors(folder / kOptimizerFile, parts_.optimizer.state().tensors,
                    options_.partial_optimizer);
    const bool skip_scaler = options_.allow_precision_change &&
                             saved.at("counters").contains(kScaler) != (scaler_ != nullptr);
    restore_tensors(folder / kMethodsFile, method_tensors(!skip_scaler), /*partial=*/skip_scaler);
    parts_.optimizer.restore(counters_of(saved, folder, "optimizer"));
    const auto restore_part = [&](const std::string& name, Stateful& part) {
      part.restore(counters_of(saved, folder, name));
    };
    each_part(restore_part, !skip_scaler);
  }

  void rewind_sinks(const ordered_json& saved) {
    const ordered_json& positions = saved.at("sinks");
    // Checkpoints of earlier versions do not have these values.
    const ordered_json seconds = saved.value("sink_seconds", ordered_json::array());
    for (std::size_t i = 0; i < sinks_.size() && i < positions.size(); ++i) {
      sinks_[i]->rewind(positions[i].get<std::int64_t>());
      if (i < seconds.size()) sinks_[i]->advance(seconds[i].get<double>());
    }
  }

  CheckpointOptions options_;
  CheckpointParts parts_;
  StateChecks checks_;
  ordered_json identity_;
  IdentityCheck check_;
  Stateful* scaler_ = nullptr;
  std::vector<MetricSink*> sinks_;
  /// TrainState::best_since of the newest checkpoint.
  std::int64_t best_since_ = 0;
  /// On rank 0: the checkpoint that was restored last.
  std::optional<StoredCheckpoint> restored_;
  int failures_ = 0;
  std::string last_failure_;
  std::future<void> writing_;
};

Checkpointer::Checkpointer(CheckpointOptions options, CheckpointParts parts, ordered_json identity,
                           IdentityCheck check)
    : impl_(std::make_unique<Impl>(std::move(options), parts, std::move(identity),
                                   std::move(check))) {}

Checkpointer::~Checkpointer() = default;

void Checkpointer::set_identity(ordered_json identity) {
  impl_->set_identity(std::move(identity));
}

void Checkpointer::attach(Stateful* scaler, std::vector<MetricSink*> sinks) {
  impl_->attach(scaler, std::move(sinks));
}

bool Checkpointer::due_after_step(const TrainState& state) const {
  const std::int64_t every = impl_->options().every_steps;
  return every > 0 && state.global_step % every == 0;
}

bool Checkpointer::due_after_epoch(const TrainState& state, bool last) const {
  const CheckpointOptions& options = impl_->options();
  // Without a checkpoint after the last epoch, resuming a finished run would train its last epochs
  // again.
  if (last) return options.every_steps > 0 || options.every_epochs > 0;
  return (options.every_epochs > 0 && state.epoch % options.every_epochs == 0) ||
         due_after_step(state);
}

bool Checkpointer::save(const TrainState& state, std::optional<double> metric, bool complete) {
  return impl_->save(state, metric, complete);
}

void Checkpointer::finish() {
  impl_->finish();
}

void Checkpointer::finish_run() {
  impl_->finish_run();
}

bool Checkpointer::resume(TrainState& state) {
  if (impl_->options().resume && impl_->restore(state)) return true;
  impl_->start_over();
  return false;
}

bool Checkpointer::restore(TrainState& state) {
  return impl_->restore(state);
}

}  // namespace precast::engine
