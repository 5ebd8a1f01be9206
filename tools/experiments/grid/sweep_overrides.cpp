#include "tools/experiments/grid/sweep_overrides.h"

#include <algorithm>
#include <utility>

namespace precast::tools {

void add_overrides(const std::vector<Override>& overrides, Sweep& sweep,
                   std::vector<SweepAxis>& fixed) {
  for (const Override& override : overrides) {
    SweepAxis axis{override.key, {{setting_text(override.value), override.value.origin}}};
    std::erase_if(sweep.overrides, [&](const Setting& one) { return one.key == override.key; });
    sweep.overrides.push_back({override.key, axis.values[0].text});
    const auto same = std::ranges::find(fixed, override.key, &SweepAxis::key);
    if (same == fixed.end()) {
      fixed.push_back(std::move(axis));
    } else {
      *same = std::move(axis);
    }
  }
}

}  // namespace precast::tools
