#include "recipes/methods/model_params.h"

#include <fmt/format.h>

#include "framework/core/error.h"

namespace precast::recipes {

void set_model_params(TrainPlan& plan, const std::string& method, const std::string& section,
                      const std::vector<std::pair<std::string, std::string>>& values) {
  ConfigNode& params = plan.model.params;
  if (const ConfigNode* given = params.find(section)) {
    throw ConfigError(
        fmt::format("method {}: expected a recipe without model.params.{}, got {} ({}). Remove the "
                    "key or the method",
                    method, section, given->text(), given->origin.text()));
  }
  const Origin origin{fmt::format("method {} with model {}", method, plan.model.arch), 0, 0};
  ConfigNode node;
  node.kind = ConfigNode::Kind::map;
  node.origin = origin;
  for (const auto& [key, text] : values) {
    const ConfigNode value = ConfigNode::from_text(text, origin);
    if (key.empty()) {
      node = value;
    } else {
      node.entries.push_back({key, origin, value});
    }
  }
  params.kind = ConfigNode::Kind::map;
  params.entries.push_back({section, origin, node});
}

}  // namespace precast::recipes
