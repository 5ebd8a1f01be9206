#include "data/image/jpeg_limits.h"

#include <fmt/core.h>

#include "framework/core/error.h"

namespace precast::data {

void check_coefficients(const jpeg_decompress_struct& decompress) {
  // This function of libjpeg changes nothing, but does not take a const pointer.
  if (jpeg_has_multiple_scans(const_cast<j_decompress_ptr>(&decompress)) == FALSE) return;
  std::uint64_t blocks = 0;
  for (int i = 0; i < decompress.num_components; ++i) {
    const jpeg_component_info& component = decompress.comp_info[i];
    blocks += std::uint64_t{component.width_in_blocks} * component.height_in_blocks;
  }
  const std::uint64_t bytes = blocks * sizeof(JBLOCK);
  if (bytes <= kMaxCoefficientBytes) return;
  throw DataError(
      fmt::format("expected at most {} bytes of coefficients in a JPEG of several scans (such as a "
                  "progressive one), got {}",
                  kMaxCoefficientBytes, bytes));
}

}  // namespace precast::data
