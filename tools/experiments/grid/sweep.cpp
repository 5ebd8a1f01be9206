#include "tools/experiments/grid/sweep.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>

#include "framework/core/error.h"
#include "tools/cli/recipe_file.h"
#include "tools/experiments/grid/axis_product.h"
#include "tools/experiments/grid/recipe_metric.h"
#include "tools/experiments/grid/sweep_overrides.h"
#include "tools/experiments/grid/sweep_trials.h"

namespace precast::tools {
namespace {

using Kind = ConfigNode::Kind;

constexpr const char* kSeedKey = "training.seed";
constexpr const char* kLogLevelKey = "logging.log_level";
/// Keys that the grid itself sets for each trial.
constexpr const char* kOwnKeys[] = {"logging.folder", "logging.run_id", "checkpoint.resume"};

bool is_smaller_better(const std::string& metric) {
  return metric.ends_with("loss") || metric.ends_with("minutes") || metric == "mse";
}

/// Whether `metric` is one of precast's own figures in summary.json, so that its direction is
/// known. For a plug-in's metric, the key `direction` is required.
bool is_known_metric(std::string_view metric) {
  constexpr std::string_view kNames[] = {"val_loss",
                                         "train_loss",
                                         "images_per_second",
                                         "train_minutes",
                                         "eval_minutes",
                                         "wait_minutes",
                                         "r2",
                                         "mse",
                                         "map",
                                         "f1_micro",
                                         "f1_macro",
                                         "mean_iou",
                                         "per_class_accuracy"};
  return metric.starts_with("top_") ||
         std::ranges::find(kNames, metric) != std::ranges::end(kNames);
}

void check_metric(const Origin& origin, std::string_view key, const std::string& metric,
                  const std::string& direction, Diagnostics& diagnostics) {
  if (is_known_metric(metric) || direction != "auto") return;
  diagnostics.error(origin, key,
                    fmt::format("expected a figure of summary.json, such as top_1 or val_loss, got "
                                "'{}'. For a metric of a plug-in, set direction to max or min",
                                metric));
}

/// The values of the file's keys.
struct Keys {
  std::string recipe;
  std::string folder;
  ConfigNode set, axes, zip, seeds, devices, early_stop;
  std::int64_t seed = 0;
  std::string metric;
  std::string direction = "auto";
  std::int64_t slots_per_device = 1, cores_per_slot = 0, max_retries = 2;
  double retry_pause_s = 5;
  bool share_loader = false;
};

/// Adds the keys of the section `grid`, which say where and how trials run.
void add_grid_keys(Schema& schema, Keys& keys) {
  schema.add("grid.devices", &keys.devices,
             "devices to train on: auto (all GPUs; the CPU if there are none), cpu, or GPU indices "
             "such as [0, 1]");
  schema
      .add("grid.slots_per_device", &keys.slots_per_device, "number of trials that share a device")
      .min(1)
      .max(1024);
  schema
      .add("grid.cores_per_slot", &keys.cores_per_slot,
           "cores that each trial is bound to; 0: equal shares of the usable cores")
      .min(0)
      .max(4096);
  schema.add("grid.share_loader", &keys.share_loader,
             "whether trials that load the same data, and start together, take their batches from "
             "one loader process; results do not change");
  schema
      .add("grid.max_retries", &keys.max_retries,
           "number of retries after failures that may be temporary")
      .min(0)
      .max(1000);
  schema
      .add("grid.retry_pause_s", &keys.retry_pause_s,
           "seconds before the first retry; doubled for each further retry")
      .min(0)
      .max(86400);
}

Schema make_schema(Keys& keys) {
  Schema schema;
  schema.add("recipe", &keys.recipe, "the recipe that all trials share").required();
  schema.add("folder", &keys.folder, "folder of the results; default: runs/<name of the sweep>");
  schema.add("set", &keys.set, "recipe keys that are the same in all trials: {key: value}");
  schema.add("axes", &keys.axes, "recipe keys and the values to try: {key: values}");
  schema.add(
      "zip", &keys.zip,
      "axes whose n-th values are used together: [[key, key], ...]; other axes are combined");
  schema.add("seeds", &keys.seeds, "N: training.seed 0 to N - 1; or a list of seeds");
  schema.add("seed", &keys.seed, "seed for axes whose values are drawn").min(0);
  schema.add(
      "metric", &keys.metric,
      "figure of summary.json to rank trials by; empty: the trials' "
      "validation.best_metric, otherwise the usual metric for their loss (top_1 for class labels)");
  schema
      .add(
          "direction", &keys.direction,
          "max if larger values of the metric are better, min if smaller values are; auto only for "
          "precast's own metrics")
      .choices({"auto", "max", "min"});
  schema.add("early_stop", &keys.early_stop,
             "rule that stops bad trials early: none, median or asha; with options, such as asha: "
             "{reduction: 3}");
  add_grid_keys(schema, keys);
  return schema;
}

std::vector<SweepAxis> read_set(const ConfigNode& node, Diagnostics& diagnostics) {
  std::vector<SweepAxis> fixed;
  if (node.kind == Kind::null) return fixed;
  if (node.kind != Kind::map) {
    diagnostics.error(node.origin, "set",
                      fmt::format("expected {{key: value}}, got {}", node.text()));
    return fixed;
  }
  for (const auto& entry : node.entries)
    fixed.push_back({entry.key, {{setting_text(entry.value), entry.value.origin}}});
  return fixed;
}

std::vector<SweepAxis> read_axes(const Keys& keys, Diagnostics& diagnostics) {
  std::vector<SweepAxis> axes;
  if (keys.axes.kind != Kind::map && keys.axes.kind != Kind::null) {
    diagnostics.error(keys.axes.origin, "axes",
                      fmt::format("expected {{key: values}}, got {}", keys.axes.text()));
    return axes;
  }
  for (const auto& entry : keys.axes.entries) {
    axes.push_back(
        read_axis(entry.key, entry.value, static_cast<std::uint64_t>(keys.seed), diagnostics));
  }
  return axes;
}

void add_seeds(const ConfigNode& node, std::vector<SweepAxis>& axes, Diagnostics& diagnostics) {
  if (node.kind == Kind::null) return;
  SweepAxis axis{kSeedKey, {}};
  if (node.kind == Kind::list) {
    for (const ConfigNode& item : node.items)
      axis.values.push_back({setting_text(item), item.origin});
    if (node.items.empty())
      diagnostics.error(node.origin, "seeds", "expected at least one seed, got none");
  } else {
    std::int64_t count = 0;
    Schema schema;
    schema.add("seeds", &count, "number of seeds, or a list of them").min(1).max(10'000);
    schema.apply(Override{"seeds", node}, diagnostics);
    for (std::int64_t seed = 0; seed < count; ++seed)
      axis.values.push_back({std::to_string(seed), node.origin});
  }
  axes.push_back(std::move(axis));
}

void check_keys(const std::vector<SweepAxis>& axes, Diagnostics& diagnostics) {
  std::set<std::string> seen;
  for (const SweepAxis& axis : axes) {
    const Origin& origin = axis.values.empty() ? Origin{} : axis.values[0].origin;
    if (!seen.insert(axis.key).second) {
      diagnostics.error(
          origin, axis.key,
          "is given twice. `axes`, `seeds` and `set` (or the command line) must not contain the "
          "same key");
    }
    if (std::ranges::find(kOwnKeys, axis.key) != std::end(kOwnKeys))
      diagnostics.error(origin, axis.key, "is set by the grid itself. Remove this key");
    // A drawn value may occur twice, with the same origin: zip may pair it with different values of
    // another axis. A value that is written twice is a mistake.
    std::map<std::string, const AxisValue*> values;
    for (const AxisValue& value : axis.values) {
      const auto [first, added] = values.emplace(canonical_value(value.text), &value);
      if (added || first->second->origin.text() == value.origin.text()) continue;
      const std::string& before = first->second->text;
      diagnostics.error(value.origin, axis.key,
                        fmt::format("{} is given twice{}", value.text,
                                    before == value.text ? "" : ", also as " + before));
    }
  }
}

/// With log_level 0, validation figures are logged once per run, and no trial would ever be
/// stopped.
void check_evaluated(const Sweep& sweep, Diagnostics& diagnostics) {
  if (sweep.early_stop.rule == EarlyStopOptions::Rule::none ||
      sweep.early_stop.metric == "train_loss")
    return;
  Diagnostics ignored;  // ignored: the trials report mistakes in the recipe
  const ConfigNode recipe = read_recipe_file(sweep.recipe, ignored).sections;
  for (const Trial& trial : sweep.trials) {
    if (value_of(kLogLevelKey, recipe, trial.settings).scalar != "0") continue;
    diagnostics.error(origin_of(sweep, trial, kLogLevelKey), "early_stop",
                      fmt::format("expected {} after each epoch, got none: {} is 0. Set it to 1",
                                  sweep.early_stop.metric, kLogLevelKey));
    return;
  }
}

void check_not_eval_only(const Sweep& sweep, Diagnostics& diagnostics) {
  const auto axis = std::ranges::find(sweep.axes, kEvalOnlyKey, &SweepAxis::key);
  if (axis == sweep.axes.end()) {
    Diagnostics ignored;  // ignored: the trials report mistakes in the recipe
    const ConfigNode recipe = read_recipe_file(sweep.recipe, ignored).sections;
    reject_eval_only(value_of(kEvalOnlyKey, recipe, {}), diagnostics);
    return;
  }
  for (const auto& [text, origin] : axis->values) {
    ConfigNode value = value_of(kEvalOnlyKey, {}, {{axis->key, text}});
    value.origin = origin;
    reject_eval_only(value, diagnostics);
  }
}

void read_devices(const ConfigNode& node, SlotOptions& slots, Diagnostics& diagnostics) {
  if (node.kind == Kind::null) return;
  slots.devices.clear();
  const bool one = node.kind == Kind::scalar;
  for (const ConfigNode& item : one ? std::vector{node} : node.items) {
    const bool number =
        !item.scalar.empty() && item.scalar.find_first_not_of("0123456789") == std::string::npos;
    if (number || (one && (item.scalar == "auto" || item.scalar == "cpu"))) {
      slots.devices.push_back(item.scalar);
    }
  }
  if (slots.devices.size() != (one ? 1 : node.items.size()) || slots.devices.empty()) {
    diagnostics.error(
        node.origin, "grid.devices",
        fmt::format("expected auto, cpu or GPU indices such as [0, 1], got {}", node.text()));
  }
}

EarlyStopOptions::Rule read_rule(const ConfigNode& node, const std::string& name,
                                 Diagnostics& diagnostics) {
  using Rule = EarlyStopOptions::Rule;
  if (name == "median") return Rule::median;
  if (name == "asha") return Rule::asha;
  if (node.kind != Kind::null && name != "none") {
    diagnostics.error(
        node.origin, "early_stop",
        fmt::format("expected none, median or asha: {{options}}, got {}", node.text()));
  }
  return Rule::none;
}

bool is_maximised(const std::string& metric, const std::string& direction) {
  return direction == "auto" ? !is_smaller_better(metric) : direction == "max";
}

/// @param usual the metric of the trials, which is used if the sweep ranks by a figure that is not
/// recorded for each epoch.
EarlyStopOptions read_early_stop(const ConfigNode& node, const std::string& metric,
                                 const std::string& usual, const std::string& direction,
                                 Diagnostics& diagnostics) {
  EarlyStopOptions options;
  options.metric = is_per_epoch(metric) ? metric : usual;
  const bool named = node.kind == Kind::map && node.entries.size() == 1;
  const std::string rule = named ? node.entries[0].key : node.scalar;
  options.rule = read_rule(node, rule, diagnostics);
  Schema schema;
  schema.add("metric", &options.metric,
             "metric by which trials are compared; it must be recorded after each epoch");
  schema
      .add("min_epochs", &options.min_epochs,
           "number of epochs that every trial trains before it can be stopped")
      .min(1)
      .max(1e6);
  if (options.rule == EarlyStopOptions::Rule::asha)
    schema
        .add("reduction", &options.reduction,
             "N: of the trials that reached the same epoch, the best 1/N continue")
        .min(2)
        .max(1000);
  if (named) schema.apply(node.entries[0].value, diagnostics, "early_stop." + rule);
  const bool same = options.metric == metric;
  options.maximise = is_maximised(options.metric, same ? direction : "auto");
  if (options.rule == EarlyStopOptions::Rule::none) return options;
  // read_sweep() checks the metric of the sweep. The key `direction` applies only to that metric.
  if (!same && !is_known_metric(options.metric)) {
    diagnostics.error(node.origin, "early_stop",
                      fmt::format("expected one of precast's metrics, such as val_loss, got '{}'. "
                                  "Set the option `metric` of early_stop to one of them",
                                  options.metric));
  }
  if (!is_per_epoch(options.metric)) {
    diagnostics.error(
        node.origin, "early_stop",
        fmt::format("expected a figure that is recorded for each epoch, such as val_loss, got {}",
                    options.metric));
  }
  return options;
}

/// Fills in everything except the trials. @param axes including seeds. @param fixed the keys of
/// `set` and of the command line.
void add_keys(Sweep& sweep, const Keys& keys, const std::vector<SweepAxis>& axes,
              const std::vector<SweepAxis>& fixed, Diagnostics& diagnostics) {
  sweep.recipe = keys.recipe;
  sweep.folder = keys.folder.empty() ? std::filesystem::path("runs") / sweep.path.stem()
                                     : std::filesystem::path(keys.folder);
  sweep.axes = axes;
  for (const SweepAxis& axis : axes) {
    if (axis.key != kSeedKey) sweep.varied.push_back(axis.key);
  }
  sweep.axes.insert(sweep.axes.end(), fixed.begin(), fixed.end());
  const std::string usual = metric_of(sweep.recipe, sweep.axes, keys.zip);
  sweep.metric = keys.metric.empty() ? usual : keys.metric;
  sweep.maximise = is_maximised(sweep.metric, keys.direction);
  sweep.share_loader = keys.share_loader;
  sweep.slots.slots_per_device = static_cast<int>(keys.slots_per_device);
  sweep.slots.cores_per_slot = static_cast<int>(keys.cores_per_slot);
  sweep.max_retries = static_cast<int>(keys.max_retries);
  sweep.retry_pause =
      std::chrono::milliseconds(static_cast<std::int64_t>(keys.retry_pause_s * 1e3));
  read_devices(keys.devices, sweep.slots, diagnostics);
  sweep.devices_origin = keys.devices.origin;
  sweep.early_stop =
      read_early_stop(keys.early_stop, sweep.metric, usual, keys.direction, diagnostics);
}

}  // namespace

Sweep read_sweep(const std::filesystem::path& path, const std::vector<Override>& overrides) {
  Diagnostics diagnostics;
  Keys keys;
  Schema schema = make_schema(keys);
  schema.apply(parse_yaml_file(path, diagnostics), diagnostics);
  schema.check_required({path.string(), 0, 0}, diagnostics);
  Sweep sweep;
  sweep.path = path;
  std::vector<SweepAxis> fixed = read_set(keys.set, diagnostics);
  add_overrides(overrides, sweep, fixed);
  std::vector<SweepAxis> axes = read_axes(keys, diagnostics);
  add_seeds(keys.seeds, axes, diagnostics);
  add_keys(sweep, keys, axes, fixed, diagnostics);
  check_metric(schema.origin("metric"), "metric", sweep.metric, keys.direction, diagnostics);
  const bool lacks_recipe = !keys.recipe.empty() && !std::filesystem::is_regular_file(sweep.recipe);
  if (lacks_recipe) {
    diagnostics.error(schema.origin("recipe"), "recipe",
                      fmt::format("expected an existing file, got {}. Paths are relative to the "
                                  "current folder, {}",
                                  keys.recipe, std::filesystem::current_path().string()));
  }
  const AxisProduct product(axes, keys.zip, diagnostics);
  check_keys(sweep.axes, diagnostics);
  if (lacks_recipe && diagnostics.errors().size() == 1) throw IoError(diagnostics.errors()[0]);
  diagnostics.throw_if_errors();
  add_trials(sweep, fixed, product, diagnostics);
  check_evaluated(sweep, diagnostics);
  check_not_eval_only(sweep, diagnostics);
  diagnostics.throw_if_errors();
  return sweep;
}

Origin origin_of(const Sweep& sweep, const Trial& trial, std::string_view key) {
  const auto setting = std::ranges::find(trial.settings, key, &Setting::key);
  const auto axis = std::ranges::find(sweep.axes, key, &SweepAxis::key);
  if (setting != trial.settings.end() && axis != sweep.axes.end()) {
    const auto value = std::ranges::find(axis->values, setting->value, &AxisValue::text);
    if (value != axis->values.end()) return value->origin;
  }
  return {sweep.path.string(), 0, 0};
}

std::vector<std::string> group_of(const Sweep& sweep, const Trial& trial) {
  std::vector<std::string> values;
  for (const std::string& key : sweep.varied)
    values.push_back(std::ranges::find(trial.settings, key, &Setting::key)->value);
  return values;
}

}  // namespace precast::tools
