#pragma once

#include <cstddef>

#include "data/decode/scan_kernels.h"
#include "framework/core/export.h"

namespace precast::data {

/// Skips over up to `mcus` MCUs in the same way as decode_mcus() decodes them, to find the
/// beginning of the next MCU and the DC coefficients to which its coefficients are differences.
PRECAST_API ScanProgress skip_mcus(ScanState& state, std::size_t mcus);

/// Skips over a whole scan of `blocks` blocks; leaves its DC coefficients unchanged. The scan is in
/// memory up to state.limit, and 1,400 bytes may be read after that. The second half is started
/// before the first half has reached it. Both are then read alternately, so that neither waits for
/// its own last lookup. This is possible because a reader that starts at any bit soon finds the
/// same Huffman codes as those that were written (Klein and Wiseman, "Parallel Huffman decoding
/// with applications to JPEG files", The Computer Journal 46, 2003).
/// @return false for damage as defined by decode_mcus(), if state.limit comes before the last
/// block, or if more than `blocks` blocks were skipped before the halves met. The caller checks
/// what follows the last block.
PRECAST_API bool skip_scan(ScanState& state, std::size_t blocks);

}  // namespace precast::data
