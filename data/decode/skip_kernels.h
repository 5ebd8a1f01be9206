#pragma once

#include <cstddef>

#include "data/decode/scan_kernels.h"
#include "framework/core/export.h"

namespace precast::data {

/// Reads over up to `mcus` MCUs as decode_mcus() decodes them, to know where the next begins and
/// what its DC coefficients are differences to.
PRECAST_API ScanProgress skip_mcus(ScanState& state, std::size_t mcus);

/// Reads over all of a scan, of `blocks` blocks, that lies in memory up to state.limit; leaves its
/// DC coefficients alone. The second half is begun before the first one has got there, so that both
/// are read in turns and neither waits for its own last lookup: wherever one begins, Huffman codes
/// soon fall into step with those that were written (Klein and Wiseman, "Parallel Huffman decoding
/// with applications to JPEG files", The Computer Journal 46, 2003). Photos did after 15 blocks.
/// @return false for damage as decode_mcus() has it, if state.limit comes first, and mostly if it
/// is far behind the last block.
PRECAST_API bool skip_scan(ScanState& state, std::size_t blocks);

}  // namespace precast::data
