#include "data/transforms/col_out.h"

#include <fmt/format.h>

#include "framework/core/error.h"

namespace precast::data {
namespace {

/// Fills `chosen` with distinct random numbers from 0 to size - 1, in ascending order (Knuth, TAOCP
/// 3.4.2, algorithm S).
void choose_indices(int size, RandomStream& random, std::span<std::int32_t> chosen) {
  std::size_t count = 0;
  for (int i = 0; i < size && count < chosen.size(); ++i) {
    const auto left = static_cast<double>(size - i);
    const auto needed = static_cast<double>(chosen.size() - count);
    if (random.uniform() * left < needed) chosen[count++] = i;
  }
}

class ColOut final : public Transform {
 public:
  void options(Schema& schema) override {
    schema.add("p_row", &p_row_, "fraction of rows that are dropped").min(0).below(1);
    schema.add("p_col", &p_col_, "fraction of columns that are dropped").min(0).below(1);
  }
  [[nodiscard]] PixelShape output(const PixelShape& in) const override {
    const PixelShape out{static_cast<int>((1 - p_row_) * in.height),
                         static_cast<int>((1 - p_col_) * in.width), in.channels};
    if (out.height < 1 || out.width < 1) {
      const bool no_row = out.height < 1;
      throw ConfigError(fmt::format(
          "{}: expected a fraction that leaves at least one {} of images of {} x {} px, got {}",
          no_row ? "p_row" : "p_col", no_row ? "row" : "column", in.width, in.height,
          no_row ? p_row_ : p_col_));
    }
    return out;
  }
  [[nodiscard]] std::size_t scratch_bytes(const PixelShape& in) const override {
    return static_cast<std::size_t>(in.height + in.width) * sizeof(std::int32_t);
  }
  [[nodiscard]] bool moves_pixels() const override { return true; }

  void apply(const Pixels& image, TransformContext& context) const override {
    const PixelShape out = output(image.shape);
    auto* const indices = reinterpret_cast<std::int32_t*>(context.scratch.data());
    const std::span rows(indices, static_cast<std::size_t>(out.height));
    const std::span columns(indices + image.shape.height, static_cast<std::size_t>(out.width));
    choose_indices(image.shape.height, context.random, rows);
    choose_indices(image.shape.width, context.random, columns);
    // Copies forwards, so that nothing is overwritten before it is read.
    std::uint8_t* to = image.data;
    for (const int y : rows) {
      for (const int x : columns) {
        const std::uint8_t* const from = image.row(y) + std::ptrdiff_t{x} * image.shape.channels;
        for (int c = 0; c < image.shape.channels; ++c) *to++ = from[c];
      }
    }
  }

 private:
  double p_row_ = 0.15;
  double p_col_ = 0.15;
};

}  // namespace

std::unique_ptr<Transform> make_col_out() {
  return std::make_unique<ColOut>();
}

}  // namespace precast::data
