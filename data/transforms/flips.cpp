#include "data/transforms/flips.h"

#include <algorithm>

namespace precast::data {
namespace {

template <int kChannels>
void mirror_row(std::uint8_t* row, int width) {
  std::uint8_t* left = row;
  std::uint8_t* right = row + std::ptrdiff_t{kChannels} * (width - 1);
  for (; left < right; left += kChannels, right -= kChannels) {
    std::swap_ranges(left, left + kChannels, right);
  }
}

class Flip : public Transform {
 public:
  void options(Schema& schema) override {
    schema.add("probability", &probability_, "probability that an image is mirrored").min(0).max(1);
  }
  [[nodiscard]] bool moves_pixels() const override { return true; }
  [[nodiscard]] bool is_edit() const override { return true; }
  [[nodiscard]] PixelEdit edit(const PixelShape& /*shape*/, RandomStream& random) const override {
    return {.kind = random.uniform() < probability_ ? kind_ : PixelEdit::Kind::none};
  }
  void apply(const Pixels& image, TransformContext& context) const final {
    if (edit(image.shape, context.random).kind == kind_) mirror(image);
  }

 protected:
  explicit Flip(PixelEdit::Kind kind) : kind_(kind) {}
  virtual void mirror(const Pixels& image) const = 0;

 private:
  PixelEdit::Kind kind_;
  double probability_ = 0.5;
};

class HorizontalFlip final : public Flip {
 public:
  HorizontalFlip() : Flip(PixelEdit::Kind::horizontal_flip) {}

 private:
  void mirror(const Pixels& image) const override {
    for (int y = 0; y < image.shape.height; ++y) {
      if (image.shape.channels == 1) {
        mirror_row<1>(image.row(y), image.shape.width);
      } else {
        mirror_row<3>(image.row(y), image.shape.width);
      }
    }
  }
};

class VerticalFlip final : public Flip {
 public:
  VerticalFlip() : Flip(PixelEdit::Kind::vertical_flip) {}

 private:
  void mirror(const Pixels& image) const override {
    for (int top = 0, bottom = image.shape.height - 1; top < bottom; ++top, --bottom) {
      std::swap_ranges(image.row(top), image.row(top) + image.row_values(), image.row(bottom));
    }
  }
};

}  // namespace

std::unique_ptr<Transform> make_horizontal_flip() {
  return std::make_unique<HorizontalFlip>();
}
std::unique_ptr<Transform> make_vertical_flip() {
  return std::make_unique<VerticalFlip>();
}

}  // namespace precast::data
