#include "data/transforms/normalize.h"

namespace precast::data {

Normalize::Normalize(const NormalizeOptions& options) : table_() {
  for (std::size_t c = 0; c < table_.size(); ++c) {
    const auto mean = static_cast<float>(options.mean.at(c));
    const auto std = static_cast<float>(options.std.at(c));
    for (std::size_t value = 0; value < 256; ++value) {
      table_[c][value] = (static_cast<float>(value) - mean) / std;
    }
  }
}

void Normalize::apply(const std::uint8_t* in, std::size_t pixels, float* out) const {
  for (std::size_t p = 0; p < pixels; ++p) {
    out[3 * p] = table_[0][in[3 * p]];
    out[3 * p + 1] = table_[1][in[3 * p + 1]];
    out[3 * p + 2] = table_[2][in[3 * p + 2]];
  }
}

}  // namespace precast::data
