#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "data/decode/block_kernels.h"
#include "data/decode/checkpoints.h"
#include "data/decode/lane_kernels.h"
#include "data/decode/lane_tables.h"
#include "data/decode/mcu_window.h"
#include "data/decode/scan_kernels.h"

namespace precast::data {

/// A scan whose checkpoints are all known.
struct SegmentedScan {
  /// The entropy-coded bytes, and the rest of the file after them.
  std::span<const std::uint8_t> bytes;
  JpegCheckpoints checkpoints;
  McuWindow window;
  /// Component of each block of an MCU.
  std::array<std::size_t, kMaxMcuBlocks> component{};
  std::size_t mcu_blocks = 0;
};

/// Decodes the coefficients of a window of MCUs, starting at checkpoints. Decodes a few rows of
/// MCUs at a time, so that their coefficients stay in the cache. The segments of these rows (from
/// one checkpoint to the next) are decoded in lanes. A segment that is decoded up to the next
/// checkpoint must end at that checkpoint's bit, with its DC coefficients. Reads and writes nothing
/// outside its memory, whatever the scan and the checkpoints contain. Keeps its buffers between
/// calls, so use one decoder per thread.
class SegmentDecoder {
 public:
  explicit SegmentDecoder(LaneShape shape) : shape_(shape) {}

  /// @param tables the DC and the AC table of each component.
  /// @return false for images that are not decoded in lanes: all images if the shape has no lanes,
  /// very wide windows, and images with tables that were not seen before.
  bool begin(const SegmentedScan& scan, std::span<const HuffmanTable> tables);

  /// Decodes a row of MCUs; call it for all rows of the window, from top to bottom.
  /// @return the blocks of the window's MCUs, with DC coefficients instead of differences. The
  /// caller must clear the blocks, as transform_blocks() does. Null if a segment is damaged or does
  /// not match its checkpoints; then call cancel().
  LaneBlock* decode_row(std::size_t row);

  /// Clears the decoded blocks.
  void cancel();

 private:
  struct Segment {
    Lane lane;
    /// The bit of the next checkpoint. If the segment is not decoded to its end, or is the scan's
    /// last one, only an upper limit.
    std::uint64_t end_bit = 0;
    bool ends_exactly = false;
    /// Index of the block after the row's last one.
    std::size_t row_end = 0;
  };

  void fill_patterns(std::size_t blocks);
  bool plan_rows(std::size_t row);
  bool plan_segment(std::size_t row, std::size_t segment, std::size_t first_block);
  bool unstuff_segment(std::size_t first, const ScanCheckpoint* next, std::size_t blocks,
                       Segment& out);
  bool run();
  bool finish(const Segment& segment, const Lane& lane);
  bool add_up_dc(std::size_t row);
  [[nodiscard]] ScanCheckpoint point(std::size_t row, std::size_t segment) const;
  [[nodiscard]] std::size_t row_mcus() const;
  /// The blocks of a row, starting at the first segment that is needed.
  [[nodiscard]] LaneBlock* row_blocks(std::size_t row);
  [[nodiscard]] std::size_t row_end(std::size_t row);

  LaneShape shape_;
  LaneTableCache table_cache_;
  SegmentedScan scan_;
  std::size_t components_ = 0;
  /// The number of segments in a row, the index of the first one that is needed, and the index
  /// after the last one.
  std::size_t segments_ = 0, first_segment_ = 0, end_segment_ = 0;
  std::size_t batch_rows_ = 0;
  /// The rows of MCUs whose coefficients are in memory: [batch_begin_, batch_end_).
  std::size_t batch_begin_ = 0, batch_end_ = 0;
  std::vector<std::uint8_t> bytes_;
  std::size_t used_bytes_ = 0;
  std::vector<Segment> plan_;
  /// Spare MCUs, then rows of MCUs, each followed by spare MCUs.
  std::vector<LaneBlock> blocks_;
  std::size_t spare_mcus_ = 1;
  std::size_t used_blocks_ = 0;
  /// For each block; see LaneScan.
  std::vector<const LaneEntry*> ac_, next_dc_;
  /// Number of blocks in an MCU for which ac_ and next_dc_ were filled.
  std::size_t pattern_blocks_ = 0;
  LaneScan lanes_;
};

}  // namespace precast::data
