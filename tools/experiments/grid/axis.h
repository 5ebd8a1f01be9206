#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "framework/core/config/node.h"

namespace precast::tools {

/// One value of an axis, as text for a command line, and its location in the file.
struct AxisValue {
  std::string text;
  Origin origin;
};

/// A key of the recipe and its values.
struct SweepAxis {
  std::string key;
  std::vector<AxisValue> values;
};

/// Reads the values of `key`:
///
///     [0.1, 0.2]                                          exactly these
///     {from: 0.1, to: 0.5, step: 0.1}                     0.1, 0.2 ... up to 0.5
///     {uniform: {low: 0, high: 1, n: 5}}                  evenly spaced, including both ends
///     {log_uniform: {low: 1e-4, high: 1e-2, n: 3}}        evenly spaced in the logarithm
///     {uniform | log_uniform: {low, high, samples: 8}}    drawn
///     {random: {choices: [a, b, c], samples: 2}}          drawn; no repeats before all are used
///
/// Drawn values depend only on `node`, `seed` and `key`. Errors are added to `diagnostics`.
[[nodiscard]] SweepAxis read_axis(const std::string& key, const ConfigNode& node,
                                  std::uint64_t seed, Diagnostics& diagnostics);

/// Returns a canonical form of a value. Two values have the same form if they are the same number
/// (`0.1`, `0.10`, `1e-1`) or the same string.
[[nodiscard]] std::string canonical_value(const std::string& text);

}  // namespace precast::tools
