#include "tools/experiments/grid/recipe_metric.h"

#include <algorithm>
#include <iterator>
#include <map>
#include <set>
#include <string_view>
#include <system_error>

#include "framework/core/config/node.h"
#include "tools/cli/recipe_file.h"
#include "tools/experiments/grid/axis_product.h"

namespace precast::tools {
namespace {

using Kind = ConfigNode::Kind;

constexpr const char* kClassMetric = "top_1";
constexpr std::string_view kBestKey = "validation.best_metric";
constexpr std::string_view kMetricsKey = "validation.metrics";
constexpr std::string_view kLossKey = "training.loss";
/// If these keys have more combinations, their metrics are not compared.
constexpr std::size_t kMaxCombinations = 1000;

/// Returns the name that a metric listed in the recipe has in summary.json.
std::string figure_of(const ConfigNode& listed) {
  const bool with_options = listed.kind == Kind::map && !listed.entries.empty();
  std::string name = with_options ? listed.entries[0].key : listed.scalar;
  if (name != "f1") return name;
  const ConfigNode* const average =
      with_options ? listed.entries[0].value.find("average") : nullptr;
  return name + "_" + (average != nullptr && !average->scalar.empty() ? average->scalar : "macro");
}

/// The lists of `zip` with only the keys of these axes.
ConfigNode zip_of(const std::vector<SweepAxis>& axes, ConfigNode zip) {
  for (ConfigNode& list : zip.items) {
    std::erase_if(list.items, [&](const ConfigNode& key) {
      return std::ranges::find(axes, key.scalar, &SweepAxis::key) == axes.end();
    });
  }
  return zip;
}

/// The metric of a run of the recipe with these settings.
std::string metric_with(const ConfigNode& recipe, const std::vector<Setting>& settings) {
  if (std::string best = value_of(kBestKey, recipe, settings).scalar; !best.empty()) return best;
  std::string usual = usual_metric(value_of(kLossKey, recipe, settings).scalar);
  const ConfigNode metrics = value_of(kMetricsKey, recipe, settings);
  if (usual == kClassMetric || metrics.kind == Kind::null) return usual;
  return metrics.items.empty() ? "val_loss" : figure_of(metrics.items[0]);
}

}  // namespace

std::string metric_of(const std::filesystem::path& recipe, const std::vector<SweepAxis>& axes,
                      const ConfigNode& zip) {
  Diagnostics ignored;
  std::error_code missing;
  ConfigNode sections;
  if (std::filesystem::is_regular_file(recipe, missing))
    sections = read_recipe_file(recipe, ignored).sections;
  std::vector<SweepAxis> deciding;
  std::ranges::copy_if(axes, std::back_inserter(deciding), [](const SweepAxis& axis) {
    return axis.key == kBestKey || axis.key == kMetricsKey || axis.key == kLossKey;
  });
  std::set<std::string> metrics;
  Diagnostics zip_diagnostics;  // read_sweep() reports mistakes in `zip`
  const AxisProduct product(deciding, zip_of(deciding, zip), zip_diagnostics);
  const std::size_t count =
      zip_diagnostics.errors().empty() ? product.size(kMaxCombinations).value_or(0) : 0;
  for (std::size_t number = 0; number < count; ++number)
    metrics.insert(metric_with(sections, product.settings(number)));
  if (metrics.size() == 1) return *metrics.begin();
  std::erase_if(deciding, [](const SweepAxis& axis) { return axis.values.size() != 1; });
  return metric_with(sections, AxisProduct(deciding, {}, ignored).settings(0));
}

std::string usual_metric(std::string_view loss) {
  // The first default metric of each loss whose targets are not class indices (recipes/README.md).
  static const std::map<std::string, std::string, std::less<>> kDefaultMetrics = {
      {"mse", "r2"},
      {"l1", "r2"},
      {"huber", "r2"},
      {"multi_label_bce", "map"},
      {"pixel_cross_entropy", "mean_iou"}};
  const auto found = kDefaultMetrics.find(loss);
  return found != kDefaultMetrics.end() ? found->second : kClassMetric;
}

bool is_per_epoch(std::string_view figure) {
  constexpr std::string_view kPerRun[] = {"epochs",           "eval_minutes",  "images_per_second",
                                          "replaced_samples", "train_minutes", "val_images",
                                          "wait_minutes",     "world_size"};
  return std::ranges::find(kPerRun, figure) == std::ranges::end(kPerRun);
}

}  // namespace precast::tools
