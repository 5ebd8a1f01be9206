#pragma once

#include <cstddef>

#include "data/decode/scan_kernels.h"
#include "framework/core/export.h"

namespace precast::data {

/// Reads over up to `mcus` MCUs as decode_mcus() decodes them, to know where the next begins and
/// what its DC coefficients are differences to.
PRECAST_API ScanProgress skip_mcus(ScanState& state, std::size_t mcus);

/// Reads over all of a scan, of `blocks` blocks; leaves its DC coefficients alone. It lies in
/// memory up to state.limit, and 1,400 bytes that may be read behind that. The second half is begun
/// before the first one has got there, so that both are read in turns and neither waits for its own
/// last lookup: wherever one begins, Huffman codes soon fall into step with those that were written
/// (Klein and Wiseman, "Parallel Huffman decoding with applications to JPEG files", The Computer
/// Journal 46, 2003).
/// @return false for damage as decode_mcus() has it, if state.limit comes before the last block, or
/// if more than `blocks` blocks were read over before the halves met. What else lies behind the
/// last block is for the caller to look at.
PRECAST_API bool skip_scan(ScanState& state, std::size_t blocks);

}  // namespace precast::data
