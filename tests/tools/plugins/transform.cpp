// A plug-in as it should be: one transform with an option.
#include <algorithm>
#include <cstddef>

#include "data/plugin.h"

namespace {

class Invert final : public precast::data::Transform {
 public:
  void options(precast::Schema& schema) override {
    schema.add("white", &white_, "what becomes black").min(0).max(255);
  }
  void apply(const precast::data::Pixels& image,
             precast::data::TransformContext& /*context*/) const override {
    const std::size_t values = image.shape.values();
    for (std::size_t v = 0; v < values; ++v)
      image.data[v] = static_cast<std::uint8_t>(std::max<std::int64_t>(0, white_ - image.data[v]));
  }

 private:
  std::int64_t white_ = 255;
};

void add_parts(precast::data::DataParts& parts) {
  parts.pipeline.transforms.add("invert", "white - value",
                                [] { return std::make_unique<Invert>(); });
}

}  // namespace

PRECAST_DATA_PLUGIN(add_parts)
