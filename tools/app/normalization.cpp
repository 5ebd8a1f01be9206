#include "tools/app/normalization.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>

#include "tools/app/recipe_outputs.h"

namespace precast::tools {
namespace {

constexpr double kRelativeTolerance = 1e-6;

bool same_numbers(const std::vector<double>& a, const std::vector<double>& b) {
  return std::ranges::equal(a, b, [](double x, double y) {
    return std::abs(x - y) <= kRelativeTolerance * std::max(std::abs(x), std::abs(y));
  });
}

}  // namespace

data::NormalizeOptions normalization_of(const data::ImagePipeline& images) {
  if (!images.type || images.normalized) return images.normalize;
  return {.mean = {}, .std = {}};
}

bool is_same_normalization(const data::NormalizeOptions& a, const data::NormalizeOptions& b) {
  return same_numbers(a.mean, b.mean) && same_numbers(a.std, b.std);
}

std::string normalization_text(const data::NormalizeOptions& normalization) {
  if (normalization.mean.empty()) return "none";
  return fmt::format("mean [{:.6g}], std [{:.6g}]", fmt::join(normalization.mean, ", "),
                     fmt::join(normalization.std, ", "));
}

std::string normalization_warning(const Recipe& recipe, const data::BetonReader& train,
                                  const data::BetonReader& val) {
  const auto* const train_images = find_input_image(recipe.train_pipeline, recipe.config, train);
  const auto* const val_images = find_input_image(recipe.val_pipeline, recipe.config, val);
  if (train_images == nullptr || val_images == nullptr) return {};
  const data::NormalizeOptions trained = normalization_of(*train_images);
  const data::NormalizeOptions evaluated = normalization_of(*val_images);
  if (is_same_normalization(trained, evaluated)) return {};
  return fmt::format(
      "{}: pipeline.train: expected the normalisation of pipeline.val ({}), got another one ({}). "
      "The model is trained and evaluated on different pixel values. With `convert`, pixels are "
      "normalised only if the pipeline also contains `normalize`",
      recipe.origin_of("pipeline.train").text(), normalization_text(evaluated),
      normalization_text(trained));
}

}  // namespace precast::tools
