// A plug-in whose parts cannot be made.
#include <stdexcept>

#include "data/plugin.h"

namespace {

void add_parts(precast::data::DataParts& parts) {
  parts.pipeline.transforms.add("unlucky", "throws",
                                []() -> std::unique_ptr<precast::data::Transform> {
                                  throw std::runtime_error("no luck today");
                                });
  parts.pipeline.transforms.add(
      "empty", "makes nothing",
      []() -> std::unique_ptr<precast::data::Transform> { return nullptr; });
}

}  // namespace

PRECAST_DATA_PLUGIN(add_parts)
