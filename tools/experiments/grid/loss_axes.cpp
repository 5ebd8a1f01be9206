#include "tools/experiments/grid/loss_axes.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>
#include <string_view>

#include "framework/core/config/node.h"
#include "tools/cli/recipe_file.h"
#include "tools/experiments/grid/axis.h"
#include "tools/experiments/grid/recipe_metric.h"
#include "tools/experiments/trial/trial.h"

namespace precast::tools {
namespace {

constexpr std::string_view kMethodsKey = "methods";

/// The parts of a list of methods that change the loss. Two lists with the same text have the same
/// loss, if the other keys of the recipe are the same.
std::string loss_of_methods(const std::string& list) {
  Diagnostics ignored;  // the trials report mistakes
  // Without the method, the default of training.label_smoothing has the same effect. It is an error
  // to give both the method and this key.
  std::string smoothing = canonical_value("0.1");
  std::string bce;
  for (const ConfigNode& item : parse_override(list, {}, ignored).items) {
    const bool with_options = item.kind == ConfigNode::Kind::map && !item.entries.empty();
    const std::string& name = with_options ? item.entries[0].key : item.scalar;
    ConfigNode options = with_options ? item.entries[0].value : ConfigNode{};
    if (name == "label_smoothing") {
      if (const ConfigNode* const value = options.find("smoothing"))
        smoothing = canonical_value(value->scalar);
    } else if (name == "bce_loss") {
      std::erase_if(options.entries, [](const auto& entry) { return entry.key == "log_bias"; });
      bce = "bce " + (options.entries.empty() ? "" : options.flow());
    }
  }
  return smoothing + " " + bce;
}

bool is_loss_key(std::string_view key, std::string_view figure) {
  if (key == "validation.lr_tta") return figure == "val_loss";
  return key == "training.loss" || key == "training.label_smoothing" || key == kMethodsKey ||
         (key.starts_with("loss.") && key != "loss.kernels");
}

/// The axes whose values lead to different definitions of `figure`.
std::vector<const SweepAxis*> loss_axes(const Sweep& sweep, std::string_view figure) {
  std::vector<const SweepAxis*> axes;
  for (const SweepAxis& axis : sweep.axes) {
    if (!is_loss_key(axis.key, figure)) continue;
    std::set<std::string> different;
    for (const AxisValue& value : axis.values)
      different.insert(axis.key == kMethodsKey ? loss_of_methods(value.text)
                                               : canonical_value(value.text));
    if (different.size() > 1) axes.push_back(&axis);
  }
  return axes;
}

/// A figure of the trials that does not depend on the loss.
std::string other_metric(const Sweep& sweep) {
  Diagnostics ignored;  // the trials report mistakes in the recipe
  const ConfigNode recipe = read_recipe_file(sweep.recipe, ignored).sections;
  return usual_metric(value_of("training.loss", recipe, sweep.trials.at(0).settings).scalar);
}

std::string warning(const Sweep& sweep, const std::vector<const SweepAxis*>& axes,
                    const std::string& figure) {
  const bool ranks = sweep.metric == figure;
  const bool stops =
      sweep.early_stop.rule != EarlyStopOptions::Rule::none && sweep.early_stop.metric == figure;
  std::string keys;
  for (const SweepAxis* axis : axes) keys += (keys.empty() ? "" : ", ") + axis->key;
  return fmt::format(
      "{}: {}: expected axes that do not change how {} is computed, because it {}, got {} that "
      "{}. Set {} to a figure that does not depend on the loss, such as {}",
      axes[0]->values.at(0).origin.text(), keys, figure,
      !stops  ? "ranks the trials"
      : ranks ? "ranks the trials and stops them early"
              : "stops trials early",
      axes.size() == 1 ? "one" : "several", axes.size() == 1 ? "does" : "do",
      !stops  ? "`metric`"
      : ranks ? "`metric` and the option `metric` of early_stop"
              : "the option `metric` of early_stop",
      other_metric(sweep));
}

}  // namespace

std::vector<std::string> incomparable_losses(const Sweep& sweep) {
  std::set<std::string> figures = {sweep.metric};
  if (sweep.early_stop.rule != EarlyStopOptions::Rule::none)
    figures.insert(sweep.early_stop.metric);
  std::vector<std::string> warnings;
  for (const std::string& figure : figures) {
    if (figure != "val_loss" && figure != "train_loss") continue;
    const auto axes = loss_axes(sweep, figure);
    if (!axes.empty()) warnings.push_back(warning(sweep, axes, figure));
  }
  return warnings;
}

}  // namespace precast::tools
