// A user-defined transform: some pixels become black or white.
//
//   pipeline:
//     train: [random_resized_crop, horizontal_flip, salt_and_pepper: {share: 0.02}]
#include <memory>

#include "data/plugin.h"

namespace {

using precast::data::Pixels;

class SaltAndPepper final : public precast::data::Transform {
 public:
  void options(precast::Schema& schema) override {
    schema.add("share", &share_, "fraction of the pixels that become black or white").min(0).max(1);
  }

  /// All random numbers come from the context, so a sample has the same pixels in an epoch with any
  /// number of threads.
  void apply(const Pixels& image, precast::data::TransformContext& context) const override {
    const int channels = image.shape.channels;
    const std::size_t pixels = image.shape.pixels();
    for (std::size_t p = 0; p < pixels; ++p) {
      const double draw = context.random.uniform();
      if (draw >= share_) continue;
      const std::uint8_t value = draw < share_ / 2 ? 0 : 255;
      for (int c = 0; c < channels; ++c)
        image.data[p * static_cast<std::size_t>(channels) + static_cast<std::size_t>(c)] = value;
    }
  }

 private:
  double share_ = 0.05;
};

void add_parts(precast::data::DataParts& parts) {
  parts.pipeline.transforms.add("salt_and_pepper", "some pixels become black or white",
                                [] { return std::make_unique<SaltAndPepper>(); });
}

}  // namespace

PRECAST_DATA_PLUGIN(add_parts)
