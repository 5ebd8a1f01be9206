#pragma once

#include <cstdint>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "framework/api/model.h"
#include "framework/api/model_spec.h"

namespace precast::test {

/// tests/golden/torchvision/models.json: what torchvision's models are and compute.
[[nodiscard]] const nlohmann::json& torchvision_golden();

/// A model of the registry.
[[nodiscard]] std::unique_ptr<Model> make_model(const ModelSpec& spec);

/// `model.params` as a recipe would hold it: "{zero_init_residual: true}".
[[nodiscard]] ConfigNode params(const std::string& yaml);

/// Of the bits of all parameters and their places: the checksum of make_torchvision_goldens.py.
[[nodiscard]] std::uint64_t weights_checksum(const Model& model);

/// Sets parameters and buffers by the formula that the goldens were made with.
void fill_by_formula(Model& model);

/// Makes parameters and buffers float64. Batch statistics of few places amplify rounding: that of
/// float32, which differs from CPU to CPU, moves a gradient by 1 %, that of float64 by 1e-11.
void to_double(Model& model);
/// The largest relative difference between two ways of computing the same in float64.
inline constexpr double kFloat64Error = 1e-8;

}  // namespace precast::test
