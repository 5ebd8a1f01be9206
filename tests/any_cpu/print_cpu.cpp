// Prints the instruction set that Highway chooses and the number of cores that precast may use, as
// `AVX2 2`.
#include <fmt/core.h>
#include <hwy/targets.h>

#include "framework/core/system.h"

int main() {
  const std::int64_t supported = hwy::SupportedTargets();
  fmt::print("{} {}\n", hwy::TargetName(supported & -supported), precast::usable_cores());
  return 0;
}
