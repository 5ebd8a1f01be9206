#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "data/decode/baseline_header.h"
#include "data/decode/checkpoints.h"
#include "data/decode/mcu_window.h"
#include "data/decode/scan_kernels.h"
#include "data/decode/scratch.h"
#include "data/decode/segment_decoder.h"
#include "data/decode/unstuffed_bytes.h"
#include "data/image/image.h"

namespace precast::data {

/// Asks the decoder to record checkpoints. The decoder then reads the scan to its end.
struct CheckpointRequest {
  std::size_t interval = 0;
  /// Receives the checkpoints; empty if the scan is damaged below the region, or if a checkpoint
  /// cannot be packed.
  std::vector<std::uint64_t>* points = nullptr;
};

/// Decodes a region of a JPEG of the common kind (baseline_header.h). Processes one row of MCUs at
/// a time, so that its samples stay in the cache during decoding, upsampling and colour conversion.
/// Skips MCUs outside the region (by seeking, if there are checkpoints), and stops below the
/// region. With checkpoints, several parts of the scan (lanes) are decoded in an interleaved loop
/// (SegmentDecoder). Pixels are bitwise identical to libjpeg-turbo's. Keeps scratch memory: use one
/// per thread.
class PRECAST_API BaselineDecoder {
 public:
  /// @param luma_only return Y as all three values of each pixel.
  explicit BaselineDecoder(LaneShape shape, bool luma_only = false)
      : segments_(shape), luma_only_(luma_only) {}

  /// @param region inside the image.
  /// @return the pixels, valid until the next call; empty if anything that has to be read for the
  /// region is irregular. libjpeg must then decode or reject the image.
  std::optional<ImageView> decode(std::span<const std::byte> jpeg, const BaselineHeader& header,
                                  const Rect& region, JpegDct dct, JpegCheckpoints checkpoints,
                                  CheckpointRequest request);
  /// Like decode(), but returns planes. For a grey image, and with `luma_only`, all three are the
  /// same plane.
  std::optional<PlanarView> decode_planes(std::span<const std::byte> jpeg,
                                          const BaselineHeader& header, const Rect& region,
                                          JpegDct dct, JpegCheckpoints checkpoints,
                                          CheckpointRequest request);
  /// Whether the image is intact to its end and its end marker directly follows the scan data, so
  /// that libjpeg would neither reject it nor warn. Only reads the Huffman codes, which takes a
  /// fraction of the time of decoding.
  bool is_intact(std::span<const std::byte> jpeg, const BaselineHeader& header);

 private:
  /// The samples of one component for a row of MCUs, limited to the window's columns. Above them
  /// are the last sample rows of the previous row of MCUs.
  struct Strip {
    std::vector<std::uint8_t> samples;
    std::size_t stride = 0;
    /// Number of sample rows from the previous row of MCUs.
    std::size_t overlap_rows = 0;
    std::size_t rows = 0;

    [[nodiscard]] std::uint8_t* row(std::size_t index);
  };

  bool decode_region(std::span<const std::byte> jpeg, const BaselineHeader& header,
                     const Rect& region, JpegDct dct, JpegCheckpoints checkpoints,
                     CheckpointRequest request);
  bool build_tables(const BaselineHeader& header, JpegDct dct);
  void prepare_strips(const BaselineHeader& header);

  bool seek(const ScanCheckpoint& point, std::size_t end);
  void extend();
  [[nodiscard]] bool read_past_end() const;
  template <typename Run>
  bool read_mcus(std::size_t mcus, const Run& run);
  template <typename Run>
  bool read_range(std::size_t row, std::size_t first, std::size_t end, const Run& run);
  bool skip(std::size_t row, std::size_t first, std::size_t end);
  bool begin_segments(const JpegCheckpoints& checkpoints, std::size_t components);
  bool decode_row(std::size_t row, JpegDct dct, JpegCheckpoints checkpoints);
  bool decode_segments(const BaselineHeader& header, std::size_t row, JpegDct dct);
  bool seek_to_row(std::size_t row, JpegCheckpoints checkpoints);
  void note_checkpoint(std::size_t row, std::size_t column);
  void finish_checkpoints();

  [[nodiscard]] bool is_grey(const BaselineHeader& header) const {
    return luma_only_ || header.components == 1;
  }
  void set_targets();
  void save_last_rows();
  void emit_rows(const BaselineHeader& header, const Rect& region, std::size_t mcu_row);
  void emit_row(const BaselineHeader& header, const Rect& region, int y, std::size_t mcu_row);
  const std::uint8_t* chroma_row(const BaselineHeader& header, std::size_t component, int y,
                                 std::size_t mcu_row);

  UnstuffedBytes bytes_;
  ScanState state_;
  std::array<HuffmanTable, 6> tables_;
  std::array<BlockQuantizers, 3> quantizers_;
  SegmentDecoder segments_;
  bool luma_only_;
  McuWindow window_;
  std::array<Strip, 3> strips_;
  std::array<BlockTarget, kMaxMcuBlocks> targets_;
  CheckpointRequest request_;
  std::span<const std::uint8_t> scan_;
  /// The position in `scan_` up to which `bytes_` may read.
  std::size_t scan_end_ = 0;
  std::vector<std::uint16_t> blended_;
  std::array<std::vector<std::uint8_t>, 2> upsampled_;
  Scratch memory_;
  /// The region's pixels, in `memory_`: [height][stride] bytes of RGB. If `as_planes_` is true,
  /// they are three planes of that size, or one plane if is_grey().
  std::uint8_t* pixels_ = nullptr;
  std::size_t stride_ = 0;
  bool as_planes_ = false;
};

}  // namespace precast::data
