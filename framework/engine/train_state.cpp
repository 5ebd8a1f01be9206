#include "framework/engine/train_state.h"

#include <fmt/format.h>

#include <cmath>
#include <nlohmann/json.hpp>

#include "framework/core/error.h"

namespace precast::engine {
namespace {

using nlohmann::ordered_json;

/// Reads what to_json() wrote.
SourceTimes source_times_in(const ordered_json& json) {
  return {.processing = json.at("decoding").get<double>(),
          .disk = json.at("reading").get<double>(),
          .blocked = json.at("blocked").get<double>(),
          .ahead = json.at("ahead").get<double>(),
          .copying = json.at("copying").get<double>()};
}

/// Converts the saved number of finished steps of the epoch to steps of this run's plan.
/// @throws CheckpointError as restore_position()
std::int64_t step_in_plan(const ordered_json& saved, const TrainState& state,
                          bool order_depends_on_batch_size) {
  const auto step = saved.at("step").get<std::int64_t>();
  // Checkpoints of earlier versions may not have these values.
  const auto batch = saved.value("global_batch_size", state.global_batch_size);
  const auto steps = saved.value("steps_per_epoch", std::int64_t{0});
  const bool same_steps = steps == 0 || steps == state.steps_per_epoch;
  if (step == 0 || state.global_batch_size == 0) return step;
  if (batch == state.global_batch_size && same_steps) return step;
  // All steps of the epoch are done, and its evaluation is due.
  if (step == steps) return state.steps_per_epoch;
  const std::string hint =
      fmt::format("Resume {}from a checkpoint at the end of an epoch, by removing the newer ones",
                  batch == state.global_batch_size
                      ? ""
                      : fmt::format("with training.global_batch_size: {}, or ", batch));
  if (order_depends_on_batch_size && batch != state.global_batch_size) {
    throw CheckpointError(fmt::format(
        "checkpoint: expected a global batch of {}, because the order of the samples depends on it "
        "and the epoch is not finished, got {}. {}",
        batch, state.global_batch_size, hint));
  }
  const std::int64_t samples = step * batch;
  const std::int64_t here = samples / state.global_batch_size;
  if (samples % state.global_batch_size == 0 && here <= state.steps_per_epoch) return here;
  throw CheckpointError(fmt::format(
      "checkpoint: expected the end of one of the {} steps of an epoch with a global batch of {}, "
      "got the end of step {} with a global batch of {}. {}",
      state.steps_per_epoch, state.global_batch_size, step, batch, hint));
}

}  // namespace

void TrainState::add_skipped(std::int64_t steps) {
  skipped_steps += steps;
  epoch_skipped_steps += steps;
}

void TrainState::begin_next_epoch() {
  ++epoch;
  step = 0;
  loss_sum.zero_();
  loss_count.zero_();
  epoch_skipped_steps = 0;
}

ordered_json to_json(const SourceTimes& times) {
  return {{"decoding", times.processing},
          {"reading", times.disk},
          {"blocked", times.blocked},
          {"ahead", times.ahead},
          {"copying", times.copying}};
}

ordered_json position_of(const TrainState& state) {
  return {{"epoch", state.epoch},
          {"step", state.step},
          {"global_batch_size", state.global_batch_size},
          {"steps_per_epoch", state.steps_per_epoch},
          {"global_step", state.global_step},
          {"train_loss", state.train_loss},
          {"lr", state.lr},
          {"lr_factor", state.lr_factor},
          {"restores", state.restores},
          {"images_trained", state.images_trained},
          {"best_metric", state.best_metric},
          {"best_top_1", state.best_value},
          {"best_epoch", state.best_epoch},
          {"best_since", state.best_since},
          {"skipped_steps", state.skipped_steps},
          {"epoch_skipped_steps", state.epoch_skipped_steps},
          {"train_seconds", state.train_seconds},
          {"eval_seconds", state.eval_seconds},
          {"wait_seconds", state.wait_seconds},
          {"loader_time", to_json(state.loader_times)},
          {"replaced", to_json(state.replaced)}};
}

ordered_json position_in(const ordered_json& saved) {
  ordered_json position = saved.at("position");
  const ordered_json& identity = saved.at("identity");
  if (!position.contains("best_metric") && identity.contains("plan.best_metric"))
    position["best_metric"] = identity.at("plan.best_metric");
  if (!position.contains("global_batch_size") && identity.contains("plan.global_batch_size"))
    position["global_batch_size"] = identity.at("plan.global_batch_size");
  return position;
}

double restore_position(const ordered_json& json, TrainState& state,
                        bool order_depends_on_batch_size, bool same_evaluation) {
  json.at("epoch").get_to(state.epoch);
  state.step = step_in_plan(json, state, order_depends_on_batch_size);
  json.at("global_step").get_to(state.global_step);
  // Checkpoints of earlier versions do not have these values. The loss is null if it is NaN.
  const auto loss = json.find("train_loss");
  state.train_loss = loss != json.end() && loss->is_number() ? loss->get<double>() : NAN;
  state.best_value = json.value("best_top_1", -1.0);
  state.best_epoch = json.value("best_epoch", std::int64_t{-1});
  state.best_since = json.value("best_since", std::int64_t{0});
  state.skipped_steps = json.value("skipped_steps", std::int64_t{0});
  state.epoch_skipped_steps = json.value("epoch_skipped_steps", std::int64_t{0});
  if (!same_evaluation || json.value("best_metric", state.best_metric) != state.best_metric) {
    state.best_value = -1;
    state.best_epoch = -1;
    // Only a checkpoint at the end of an epoch (step 0) can have a value of the other metric or
    // evaluation. After such a checkpoint, values count from the next step on.
    state.best_since = state.global_step + (state.step == 0 ? 1 : 0);
  }
  json.at("lr").get_to(state.lr);
  json.at("lr_factor").get_to(state.lr_factor);
  json.at("restores").get_to(state.restores);
  json.at("images_trained").get_to(state.images_trained);
  json.at("train_seconds").get_to(state.train_seconds);
  json.at("eval_seconds").get_to(state.eval_seconds);
  json.at("wait_seconds").get_to(state.wait_seconds);
  state.loader_times =
      json.contains("loader_time") ? source_times_in(json.at("loader_time")) : SourceTimes{};
  state.replaced = json.contains("replaced") ? replaced_samples_from_json(json.at("replaced"))
                                             : ReplacedSamples{};
  const auto saved_step = json.at("step").get<std::int64_t>();
  return saved_step == 0 ? 1 : static_cast<double>(state.step) / static_cast<double>(saved_step);
}

}  // namespace precast::engine
