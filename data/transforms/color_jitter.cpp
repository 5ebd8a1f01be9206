#include "data/transforms/color_jitter.h"

#include <algorithm>
#include <array>
#include <utility>

#include "data/transforms/color.h"

namespace precast::data {
namespace {

using Adjust = void (*)(const Pixels&, double);

double random_factor(RandomStream& random, double magnitude) {
  return random.uniform(std::max(0.0, 1 - magnitude), 1 + magnitude);
}

class Factor final : public Transform {
 public:
  explicit Factor(Adjust adjust) : adjust_(adjust) {}
  void options(Schema& schema) override {
    schema
        .add("magnitude", &magnitude_,
             "largest change m; the factor is drawn from max(0, 1 - m) to 1 + m")
        .min(0)
        .required();
    schema.add("probability", &probability_, "probability that an image is changed").min(0).max(1);
  }
  void apply(const Pixels& image, TransformContext& context) const override {
    const bool chosen = context.random.uniform() < probability_;
    const double factor = random_factor(context.random, magnitude_);
    if (chosen) adjust_(image, factor);
  }

 private:
  Adjust adjust_;
  double magnitude_ = 0;
  double probability_ = 0.5;
};

class Hue final : public Transform {
 public:
  void options(Schema& schema) override {
    schema.add("magnitude", &magnitude_, "largest rotation of the hue; 0.5 is half a turn")
        .min(0)
        .max(0.5)
        .required();
    schema.add("probability", &probability_, "probability that an image is changed").min(0).max(1);
  }
  void apply(const Pixels& image, TransformContext& context) const override {
    const bool chosen = context.random.uniform() < probability_;
    const double shift = context.random.uniform(-magnitude_, magnitude_);
    if (chosen) adjust_hue(image, shift);
  }

 private:
  double magnitude_ = 0;
  double probability_ = 0.5;
};

class ColorJitter final : public Transform {
 public:
  void options(Schema& schema) override {
    schema
        .add("brightness", &brightness_,
             "largest change b; the factor is drawn from max(0, 1 - b) to 1 + b")
        .min(0);
    schema
        .add("contrast", &contrast_,
             "largest change c; the factor is drawn from max(0, 1 - c) to 1 + c")
        .min(0);
    schema
        .add("saturation", &saturation_,
             "largest change s; the factor is drawn from max(0, 1 - s) to 1 + s")
        .min(0);
    schema.add("hue", &hue_, "largest rotation of the hue; 0.5 is half a turn").min(0).max(0.5);
    schema.add("probability", &probability_, "probability that an image is changed").min(0).max(1);
  }

  void apply(const Pixels& image, TransformContext& context) const override {
    RandomStream& random = context.random;
    if (!(random.uniform() < probability_)) return;
    std::array<int, 4> order = {0, 1, 2, 3};
    for (std::size_t left = order.size(); left > 1; --left) {
      std::swap(order[left - 1], order[random.below(left)]);
    }
    const double factors[] = {random_factor(random, brightness_), random_factor(random, contrast_),
                              random_factor(random, saturation_), random.uniform(-hue_, hue_)};
    const double magnitudes[] = {brightness_, contrast_, saturation_, hue_};
    constexpr Adjust kAdjust[] = {adjust_brightness, adjust_contrast, adjust_saturation,
                                  adjust_hue};
    for (const int step : order) {
      if (magnitudes[step] > 0) kAdjust[step](image, factors[step]);
    }
  }

 private:
  double brightness_ = 0;
  double contrast_ = 0;
  double saturation_ = 0;
  double hue_ = 0;
  double probability_ = 1;
};

}  // namespace

std::unique_ptr<Transform> make_brightness() {
  return std::make_unique<Factor>(adjust_brightness);
}
std::unique_ptr<Transform> make_contrast() {
  return std::make_unique<Factor>(adjust_contrast);
}
std::unique_ptr<Transform> make_saturation() {
  return std::make_unique<Factor>(adjust_saturation);
}
std::unique_ptr<Transform> make_hue() {
  return std::make_unique<Hue>();
}
std::unique_ptr<Transform> make_color_jitter() {
  return std::make_unique<ColorJitter>();
}

}  // namespace precast::data
