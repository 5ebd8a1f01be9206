// A plug-in that gives its part the name of a part of precast.
#include "data/plugin.h"

namespace {

void add_parts(precast::data::DataParts& parts) {
  parts.pipeline.transforms.add(
      "horizontal_flip", "another",
      []() -> std::unique_ptr<precast::data::Transform> { return nullptr; });
}

}  // namespace

PRECAST_DATA_PLUGIN(add_parts)
