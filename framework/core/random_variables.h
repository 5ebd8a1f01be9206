#pragma once

#include "framework/core/export.h"
#include "framework/core/rng.h"

namespace precast {

/// Draws from a gamma distribution with scale 1 (Marsaglia and Tsang, "A simple method for
/// generating gamma variables", ACM TOMS 26, 2000). @param shape above 0.
/// @return the logarithm of the variable, because the variable itself underflows for small shapes.
[[nodiscard]] PRECAST_API double log_random_gamma(RandomStream& random, double shape);

/// Draws from Beta(alpha, alpha), alpha > 0, as a ratio of gamma variables.
[[nodiscard]] PRECAST_API double random_beta(RandomStream& random, double alpha);

}  // namespace precast
