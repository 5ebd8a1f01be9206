#include "data/transforms/poison.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <filesystem>
#include <optional>

#include "data/image/image.h"
#include "data/image/image_file.h"
#include "data/transforms/options.h"
#include "framework/core/archive/npy.h"
#include "framework/core/archive/tensor_record.h"
#include "framework/core/error.h"
#include "framework/core/file.h"
#include "framework/core/parse_number.h"

namespace precast::data {
namespace {

constexpr std::uint64_t kMaxMaskBytes = std::uint64_t{1} << 30;

Image read_mask(const std::string& path) {
  Image mask;
  if (std::filesystem::path(path).extension() != ".npy") {
    decode_image_file(read_file(path, kMaxMaskBytes), mask);
    return mask;
  }
  const NpyArray array = read_npy(path);
  if (array.dtype != DType::u8 || array.shape.size() != 3 || array.shape[2] != 3 ||
      array.bytes.empty()) {
    throw ConfigError(fmt::format("mask: expected shape [H, W, 3] and type uint8, got {} {} in {}",
                                  shape_text(array.shape), dtype_info(array.dtype).name, path));
  }
  mask = Image(static_cast<int>(array.shape[0]), static_cast<int>(array.shape[1]));
  std::memcpy(mask.pixels.data(), array.bytes.data(), array.bytes.size());
  return mask;
}

/// False for NaN.
bool is_opacity(double value) {
  return value >= 0 && value <= 1;
}

/// The opacity of each pixel: the number in `text` for all pixels, or the values of the .npy file
/// that `text` names.
std::vector<double> read_alpha(const std::string& text, const Image& mask) {
  const std::size_t pixels = mask.pixels.size() / 3;
  if (const std::optional<double> number = parse_number<double>(text)) {
    return std::vector<double>(pixels, *number);
  }
  const NpyArray array = read_npy(text);
  const bool fits = array.shape == std::vector<std::int64_t>{mask.height, mask.width};
  if (!fits || (array.dtype != DType::f32 && array.dtype != DType::f64)) {
    throw ConfigError(fmt::format(
        "alpha: expected the mask's shape [{}, {}] and type float32 or float64, got {} {} in {}",
        mask.height, mask.width, shape_text(array.shape), dtype_info(array.dtype).name, text));
  }
  std::vector<double> alpha(pixels);
  for (std::size_t p = 0; p < pixels; ++p) {
    if (array.dtype == DType::f64) {
      std::memcpy(&alpha[p], array.bytes.data() + 8 * p, 8);
    } else {
      float value = 0;
      std::memcpy(&value, array.bytes.data() + 4 * p, 4);
      alpha[p] = value;
    }
    if (!is_opacity(alpha[p])) {
      throw ConfigError(fmt::format("alpha: expected numbers from 0 to 1, got {} at [{}, {}] in {}",
                                    alpha[p], p / static_cast<std::size_t>(mask.width),
                                    p % static_cast<std::size_t>(mask.width), text));
    }
  }
  return alpha;
}

class Poison final : public Transform {
 public:
  void options(Schema& schema) override {
    schema
        .add("mask", &mask_path_,
             "the image that is blended in: an image file, or a .npy file of shape [H, W, 3] and "
             "type uint8")
        .required();
    schema
        .add("alpha", &alpha_,
             "opacity of the mask from 0 to 1: a number, or a .npy file of shape [H, W] and type "
             "float32 or float64")
        .required();
    schema.add("indices", &indices_, "ids of samples: their positions in the dataset file")
        .required();
    schema.add("clamp", &clamp_, "limits of the resulting values: [smallest, largest]");
  }
  [[nodiscard]] std::string problem() const override {
    if (std::string wrong = range_problem("clamp", clamp_, 0, 255); !wrong.empty()) return wrong;
    if (const auto number = parse_number<double>(alpha_); number && !is_opacity(*number)) {
      return fmt::format("alpha: expected a number from 0 to 1 or a .npy file, got {}", alpha_);
    }
    return indices_problem("indices", indices_);
  }

  void prepare() override {
    const Image mask = read_mask(mask_path_);
    const std::vector<double> alpha = read_alpha(alpha_, mask);
    shape_ = {mask.height, mask.width, 3};
    chosen_ = sorted_indices(indices_);
    for (std::size_t v = 0; v < mask.pixels.size(); ++v) {
      keep_.push_back(static_cast<float>(1 - alpha[v / 3]));
      add_.push_back(static_cast<float>(mask.pixels[v] * alpha[v / 3]));
    }
  }

  [[nodiscard]] PixelShape output(const PixelShape& in) const override {
    if (!(in == shape_)) {
      throw ConfigError(
          fmt::format("mask: expected {} x {} px, the size of the images at this point of the "
                      "pipeline, got {} x {}",
                      in.width, in.height, shape_.width, shape_.height));
    }
    return in;
  }

  void apply(const Pixels& image, TransformContext& context) const override {
    if (!std::ranges::binary_search(chosen_, context.sample)) return;
    const auto low = static_cast<float>(clamp_[0]);
    const auto high = static_cast<float>(clamp_[1]);
    for (std::size_t v = 0; v < add_.size(); ++v) {
      const float value = static_cast<float>(image.data[v]) * keep_[v] + add_[v];
      image.data[v] = static_cast<std::uint8_t>(std::min(high, std::max(low, value)));
    }
  }

 private:
  std::string mask_path_;
  std::string alpha_;
  std::vector<double> indices_;
  std::vector<double> clamp_ = {0, 255};
  PixelShape shape_;
  std::vector<std::uint64_t> chosen_;
  /// The new value is value * keep + add.
  std::vector<float> keep_, add_;
};

class ReplaceLabel final : public LabelTransform {
 public:
  void options(Schema& schema) override {
    schema.add("indices", &indices_, "ids of samples: their positions in the dataset file")
        .required();
    schema.add("new_label", &new_label_, "the new label of these samples").required();
  }
  [[nodiscard]] std::string problem() const override {
    return indices_problem("indices", indices_);
  }
  void prepare() override { chosen_ = sorted_indices(indices_); }
  [[nodiscard]] std::int64_t apply(std::int64_t label, std::uint64_t sample) const override {
    return std::ranges::binary_search(chosen_, sample) ? new_label_ : label;
  }

 private:
  std::vector<double> indices_;
  std::int64_t new_label_ = 0;
  std::vector<std::uint64_t> chosen_;
};

}  // namespace

std::unique_ptr<Transform> make_poison() {
  return std::make_unique<Poison>();
}
std::unique_ptr<LabelTransform> make_replace_label() {
  return std::make_unique<ReplaceLabel>();
}

}  // namespace precast::data
