#include "data/transforms/tone.h"

#include "data/transforms/color.h"

namespace precast::data {
namespace {

/// Applies an operation to each image with a given probability.
class RandomApply : public Transform {
 public:
  explicit RandomApply(double probability) : probability_(probability) {}
  void options(Schema& schema) override {
    schema.add("probability", &probability_, "probability that an image is changed").min(0).max(1);
  }
  void apply(const Pixels& image, TransformContext& context) const final {
    if (context.random.uniform() < probability_) change(image);
  }

 protected:
  virtual void change(const Pixels& image) const = 0;

 private:
  double probability_;
};

class Grayscale final : public RandomApply {
 public:
  Grayscale() : RandomApply(0.1) {}

 private:
  void change(const Pixels& image) const override { to_grayscale(image); }
};

class Solarize final : public RandomApply {
 public:
  Solarize() : RandomApply(0.5) {}
  void options(Schema& schema) override {
    schema.add("threshold", &threshold_, "values >= this are inverted").min(0).max(256);
    RandomApply::options(schema);
  }

 private:
  void change(const Pixels& image) const override { solarize(image, threshold_); }
  double threshold_ = 128;
};

class Posterize final : public RandomApply {
 public:
  Posterize() : RandomApply(0.5) {}
  void options(Schema& schema) override {
    schema.add("bits", &bits_, "number of bits kept of each value").min(0).max(8).required();
    RandomApply::options(schema);
  }

 private:
  void change(const Pixels& image) const override { posterize(image, static_cast<int>(bits_)); }
  std::int64_t bits_ = 8;
};

}  // namespace

std::unique_ptr<Transform> make_grayscale() {
  return std::make_unique<Grayscale>();
}
std::unique_ptr<Transform> make_solarize() {
  return std::make_unique<Solarize>();
}
std::unique_ptr<Transform> make_posterize() {
  return std::make_unique<Posterize>();
}

}  // namespace precast::data
