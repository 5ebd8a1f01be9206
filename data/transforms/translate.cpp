#include "data/transforms/translate.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>

#include "data/transforms/options.h"
#include "framework/core/error.h"

namespace precast::data {
namespace {

class Translate final : public Transform {
 public:
  explicit Translate(bool choose_mode) : choose_mode_(choose_mode) {}

  void options(Schema& schema) override {
    schema.add("padding", &padding_, "largest shift along each axis, px")
        .min(1)
        .max(65535)
        .required();
    if (choose_mode_) {
      schema.add("mode", &mode_, "what fills the border")
          .choices({"constant", "edge", "reflect", "symmetric"});
    }
    schema.add("fill", &fill_,
               choose_mode_ ? "colour of the border in mode constant, three numbers 0 to 255"
                            : "colour of the border, three numbers 0 to 255");
  }
  [[nodiscard]] std::string problem() const override { return colour_problem("fill", fill_); }

  [[nodiscard]] PixelShape output(const PixelShape& in) const override {
    const int shorter = std::min(in.height, in.width);
    const Border mode = border();
    const int max_padding = mode == Border::reflect ? shorter - 1 : shorter;
    if ((mode == Border::reflect || mode == Border::symmetric) && padding_ > max_padding) {
      throw ConfigError(
          fmt::format("padding: expected at most {} for images of {} x {} px and mode {}, got {}",
                      max_padding, in.width, in.height, mode_, padding_));
    }
    return in;
  }
  [[nodiscard]] std::size_t scratch_bytes(const PixelShape& in) const override {
    return in.values();
  }
  [[nodiscard]] bool moves_pixels() const override { return true; }

  [[nodiscard]] bool is_edit() const override { return true; }
  [[nodiscard]] PixelEdit edit(const PixelShape& /*shape*/, RandomStream& random) const override {
    const auto span = static_cast<std::uint64_t>(2 * padding_ + 1);
    PixelEdit shift{.kind = PixelEdit::Kind::shift, .border = border()};
    shift.row = static_cast<std::int32_t>(random.below(span)) - static_cast<std::int32_t>(padding_);
    shift.column =
        static_cast<std::int32_t>(random.below(span)) - static_cast<std::int32_t>(padding_);
    std::ranges::copy(to_colour(fill_), shift.colour);
    return shift;
  }

  void apply(const Pixels& image, TransformContext& context) const override {
    const PixelEdit shift = edit(image.shape, context.random);
    const int dy = shift.row;
    const int dx = shift.column;
    const std::array<std::uint8_t, 3> fill = fill_colour(fill_, context.mask_fill);
    std::memcpy(context.scratch.data(), image.data, image.shape.values());
    const auto* const copy = reinterpret_cast<const std::uint8_t*>(context.scratch.data());
    const Border mode = border();
    for (int y = 0; y < image.shape.height; ++y) {
      const int from = source_index(y + dy, image.shape.height, mode);
      const std::uint8_t* const source =
          from < 0 ? nullptr : copy + std::ptrdiff_t{from} * image.row_values();
      fill_row(image, y, source, dx, mode, fill);
    }
  }

 private:
  [[nodiscard]] Border border() const {
    if (mode_ == "edge") return Border::edge;
    if (mode_ == "reflect") return Border::reflect;
    return mode_ == "symmetric" ? Border::symmetric : Border::constant;
  }

  static void fill_row(const Pixels& image, int y, const std::uint8_t* source, int dx, Border mode,
                       const std::array<std::uint8_t, 3>& fill) {
    const int width = image.shape.width;
    const std::ptrdiff_t channels = image.shape.channels;
    std::uint8_t* const out = image.row(y);
    const auto put = [&](int x) {
      const int from = source == nullptr ? -1 : source_index(x + dx, width, mode);
      std::copy_n(from < 0 ? fill.data() : source + from * channels, channels, out + x * channels);
    };
    // The middle part is copied unchanged from the source.
    const int begin = source == nullptr ? width : std::clamp(-dx, 0, width);
    const int end = source == nullptr ? width : std::clamp(width - dx, begin, width);
    for (int x = 0; x < begin; ++x) put(x);
    if (end > begin) {
      std::memcpy(out + begin * channels, source + (begin + dx) * channels,
                  static_cast<std::size_t>((end - begin) * channels));
    }
    for (int x = end; x < width; ++x) put(x);
  }

  bool choose_mode_;
  std::int64_t padding_ = 0;
  std::string mode_ = "constant";
  std::vector<double> fill_ = {0, 0, 0};
};

}  // namespace

std::unique_ptr<Transform> make_translate() {
  return std::make_unique<Translate>(/*choose_mode=*/false);
}
std::unique_ptr<Transform> make_pad_crop() {
  return std::make_unique<Translate>(/*choose_mode=*/true);
}

}  // namespace precast::data
