#pragma once

#include <vector>

namespace precast::tools {

/// The median; of an even number of values, the mean of the two in the middle. @param values at
/// least one.
[[nodiscard]] double median(std::vector<double> values);

}  // namespace precast::tools
