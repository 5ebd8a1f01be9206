#include "tools/experiments/grid/recipe_metric.h"

#include <map>
#include <system_error>

#include "framework/core/config/node.h"
#include "tools/cli/recipe_file.h"

namespace precast::tools {
namespace {

constexpr const char* kClassMetric = "top_1";

/// The value of `section.key` in a recipe; null if it is not set.
const ConfigNode* find(const ConfigNode& sections, std::string_view section, std::string_view key) {
  const ConfigNode* const found = sections.find(section);
  return found == nullptr ? nullptr : found->find(key);
}

std::string text(const ConfigNode* node) {
  return node == nullptr ? "" : node->scalar;
}

/// The name in summary.json of a metric that the recipe lists.
std::string figure_of(const ConfigNode& listed) {
  const bool with_options = listed.kind == ConfigNode::Kind::map && !listed.entries.empty();
  std::string name = with_options ? listed.entries[0].key : listed.scalar;
  if (name != "f1") return name;
  const std::string average =
      with_options ? text(listed.entries[0].value.find("average")) : std::string();
  return name + "_" + (average.empty() ? "macro" : average);
}

}  // namespace

std::string metric_of(const std::filesystem::path& recipe) {
  // The first default metric of each loss whose targets are not class indices (recipes/README.md).
  static const std::map<std::string, std::string, std::less<>> kUsual = {
      {"mse", "r2"},
      {"l1", "r2"},
      {"huber", "r2"},
      {"multi_label_bce", "map"},
      {"pixel_cross_entropy", "mean_iou"}};
  std::error_code missing;
  if (!std::filesystem::is_regular_file(recipe, missing)) return kClassMetric;
  Diagnostics of_recipe;
  const ConfigNode sections = read_recipe_file(recipe, of_recipe).sections;
  if (std::string best = text(find(sections, "validation", "best_metric")); !best.empty())
    return best;
  const auto usual = kUsual.find(text(find(sections, "training", "loss")));
  if (usual == kUsual.end()) return kClassMetric;
  const ConfigNode* const metrics = find(sections, "validation", "metrics");
  if (metrics == nullptr) return usual->second;
  return metrics->items.empty() ? "val_loss" : figure_of(metrics->items[0]);
}

}  // namespace precast::tools
