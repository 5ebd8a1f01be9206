// A plug-in whose parts cannot be created, or fail when they are used.
#include <stdexcept>

#include "data/plugin.h"

namespace {

class FailsAtWork final : public precast::data::Transform {
 public:
  void apply(const precast::data::Pixels& /*image*/,
             precast::data::TransformContext& /*context*/) const override {
    throw 42;
  }
};

void add_parts(precast::data::DataParts& parts) {
  parts.pipeline.transforms.add("unlucky", "throws",
                                []() -> std::unique_ptr<precast::data::Transform> {
                                  throw std::runtime_error("no luck today");
                                });
  parts.pipeline.transforms.add(
      "empty", "makes nothing",
      []() -> std::unique_ptr<precast::data::Transform> { return nullptr; });
  parts.pipeline.transforms.add("fails_at_work", "throws at the first image",
                                [] { return std::make_unique<FailsAtWork>(); });
}

}  // namespace

PRECAST_DATA_PLUGIN(add_parts)
