#pragma once

#include <cstdint>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "framework/api/model.h"
#include "framework/api/model_spec.h"

namespace precast::test {

/// tests/golden/torchvision/models.json: the structure and the results of torchvision's models.
[[nodiscard]] const nlohmann::json& torchvision_golden();

/// A model of the registry.
[[nodiscard]] std::unique_ptr<Model> make_model(const ModelSpec& spec);

/// Parses `model.params` as they are written in a recipe: "{zero_init_residual: true}".
[[nodiscard]] ConfigNode params(const std::string& yaml);

/// The checksum of make_torchvision_goldens.py, over the bits of all parameters and their
/// positions.
[[nodiscard]] std::uint64_t weights_checksum(const Model& model);

/// Sets parameters and buffers with the formula that the goldens were made with.
void fill_by_formula(Model& model);

/// Makes parameters and buffers float64. Batch statistics over few values amplify rounding errors.
/// In float32, these differ from CPU to CPU and change a gradient by 1 %; in float64, they change
/// it by 1e-11.
void to_double(Model& model);
/// The largest relative difference allowed between two ways of computing the same value in float64.
inline constexpr double kFloat64Error = 1e-8;

}  // namespace precast::test
