#include "framework/core/config/part.h"

namespace precast {

void PartSpec::set(std::string_view option, std::string value) {
  options.kind = ConfigNode::Kind::map;
  ConfigNode scalar = ConfigNode::from_text(std::move(value));
  for (ConfigNode::Entry& entry : options.entries) {
    if (entry.key != option) continue;
    entry.value = std::move(scalar);
    return;
  }
  options.entries.push_back({std::string(option), {}, std::move(scalar)});
}

}  // namespace precast
