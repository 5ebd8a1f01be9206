#pragma once

#include <cstddef>

#include "data/decode/scan_kernels.h"
#include "framework/core/export.h"

namespace precast::data {

/// Skips over up to `mcus` MCUs in the same way as decode_mcus() decodes them, to find the
/// beginning of the next MCU and the DC coefficients before it.
PRECAST_API ScanProgress skip_mcus(ScanState& state, std::size_t mcus);

/// Skips over a complete scan of `blocks` blocks; leaves state.dc unchanged. The scan must be in
/// memory up to state.limit; up to 1,400 bytes after that may also be read. Unless the scan is
/// short, reads both halves of it alternately, so that the CPU can work on one half while it waits
/// for a lookup of the other. The second half can be read before the first half has reached it,
/// because Huffman codes are self-synchronising: a decoder that starts at any bit soon finds the
/// start of a code (Klein and Wiseman, "Parallel Huffman decoding with applications to JPEG files",
/// The Computer Journal 46, 2003).
/// @return false if the scan is damaged (ScanProgress::damaged), if state.limit comes before the
/// last block, or if more than `blocks` blocks were skipped before the halves met. The caller
/// checks what follows the last block.
PRECAST_API bool skip_scan(ScanState& state, std::size_t blocks);

}  // namespace precast::data
