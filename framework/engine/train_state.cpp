#include "framework/engine/train_state.h"

#include <nlohmann/json.hpp>

namespace precast::engine {

using nlohmann::ordered_json;

ordered_json position_of(const TrainState& state) {
  return {{"epoch", state.epoch},
          {"step", state.step},
          {"global_step", state.global_step},
          {"train_loss", state.train_loss},
          {"lr", state.lr},
          {"lr_factor", state.lr_factor},
          {"restores", state.restores},
          {"images_trained", state.images_trained},
          {"best_metric", state.best_metric},
          {"best_top_1", state.best_top_1},
          {"best_epoch", state.best_epoch},
          {"best_since", state.best_since},
          {"train_seconds", state.train_seconds},
          {"eval_seconds", state.eval_seconds},
          {"wait_seconds", state.wait_seconds}};
}

ordered_json position_in(const ordered_json& saved) {
  ordered_json position = saved.at("position");
  const ordered_json& identity = saved.at("identity");
  if (!position.contains("best_metric") && identity.contains("plan.best_metric"))
    position["best_metric"] = identity.at("plan.best_metric");
  return position;
}

void restore_position(const ordered_json& json, TrainState& state) {
  json.at("epoch").get_to(state.epoch);
  json.at("step").get_to(state.step);
  json.at("global_step").get_to(state.global_step);
  // Older checkpoints do not have these values.
  state.train_loss = json.value("train_loss", 0.0);
  state.best_top_1 = json.value("best_top_1", -1.0);
  state.best_epoch = json.value("best_epoch", std::int64_t{-1});
  state.best_since = json.value("best_since", std::int64_t{0});
  if (json.value("best_metric", state.best_metric) != state.best_metric) {
    state.best_top_1 = -1;
    state.best_epoch = -1;
    // Only after an epoch has been finished can the checkpoint have a value of the other metric.
    state.best_since = state.global_step + (state.step == 0 ? 1 : 0);
  }
  json.at("lr").get_to(state.lr);
  json.at("lr_factor").get_to(state.lr_factor);
  json.at("restores").get_to(state.restores);
  json.at("images_trained").get_to(state.images_trained);
  json.at("train_seconds").get_to(state.train_seconds);
  json.at("eval_seconds").get_to(state.eval_seconds);
  json.at("wait_seconds").get_to(state.wait_seconds);
}

}  // namespace precast::engine
