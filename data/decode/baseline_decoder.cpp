#include "data/decode/baseline_decoder.h"

#include <algorithm>
#include <cstring>

#include "data/decode/pixel_kernels.h"
#include "data/decode/skip_kernels.h"

namespace precast::data {
namespace {

/// Upper limit of an MCU's size: 6 blocks of at most 27 + 63 * 26 bits.
constexpr std::size_t kMcuBytes = 2048;
/// Bytes reserved to the left of each row, for the sample before the first one.
constexpr std::size_t kLeftSlack = 16;
/// Second byte of the end-of-image marker; the first is 0xFF.
constexpr std::uint8_t kEndOfImage = 0xD9;

template <typename T>
void grow(std::vector<T>& memory, std::size_t size) {
  if (memory.size() < size) memory.resize(size);
}

std::span<const std::uint8_t> scan_of(std::span<const std::byte> jpeg,
                                      const BaselineHeader& header) {
  const auto data = jpeg.subspan(header.scan_begin);
  return {reinterpret_cast<const std::uint8_t*>(data.data()), data.size()};
}

}  // namespace

std::uint8_t* BaselineDecoder::Strip::row(std::size_t index) {
  return samples.data() + kLeftSlack + index * stride;
}

std::optional<ImageView> BaselineDecoder::decode(std::span<const std::byte> jpeg,
                                                 const BaselineHeader& header, const Rect& region,
                                                 JpegDct dct, JpegCheckpoints checkpoints,
                                                 CheckpointRequest request) {
  as_planes_ = false;
  stride_ = 3 * static_cast<std::size_t>(region.width);
  if (!decode_region(jpeg, header, region, dct, checkpoints, request)) return std::nullopt;
  return ImageView{pixels_, region.height, region.width, static_cast<std::ptrdiff_t>(stride_)};
}

std::optional<PlanarView> BaselineDecoder::decode_planes(std::span<const std::byte> jpeg,
                                                         const BaselineHeader& header,
                                                         const Rect& region, JpegDct dct,
                                                         JpegCheckpoints checkpoints,
                                                         CheckpointRequest request) {
  as_planes_ = true;
  stride_ = (static_cast<std::size_t>(region.width) + 63) / 64 * 64;
  if (!decode_region(jpeg, header, region, dct, checkpoints, request)) return std::nullopt;
  const std::size_t plane = is_grey(header) ? 0 : static_cast<std::size_t>(region.height) * stride_;
  return PlanarView{{pixels_, pixels_ + plane, pixels_ + 2 * plane},
                    region.height,
                    region.width,
                    static_cast<std::ptrdiff_t>(stride_)};
}

bool BaselineDecoder::decode_region(std::span<const std::byte> jpeg, const BaselineHeader& header,
                                    const Rect& region, JpegDct dct, JpegCheckpoints checkpoints,
                                    CheckpointRequest request) {
  if (!build_tables(header, dct)) return false;
  scan_ = scan_of(jpeg, header);
  request_ = request;
  if (request_.points != nullptr) request_.points->clear();
  window_ = mcu_window(header, region);
  prepare_strips(header);
  const auto rows =
      static_cast<std::size_t>(region.height) * (as_planes_ && !is_grey(header) ? 3 : 1);
  pixels_ = memory_.acquire(rows * stride_ + kKernelSlack);
  if (checkpoints.empty() || checkpoints.interval == 0 ||
      checkpoints.points.size() !=
          window_.rows * checkpoints_in_row(window_.columns, checkpoints.interval)) {
    checkpoints = {};
    if (!seek({}, scan_.size())) return false;
    for (std::size_t row = 0; row < window_.first_row; ++row) {
      if (!skip(row, 0, window_.columns)) return false;
    }
  }
  const bool in_lanes = begin_segments(checkpoints, static_cast<std::size_t>(header.components));
  for (std::size_t row = window_.first_row; row < window_.end_row; ++row) {
    if (!(in_lanes ? decode_segments(header, row, dct) : decode_row(row, dct, checkpoints)))
      return false;
    emit_rows(header, region, row);
    save_last_rows();
  }
  if (request_.points != nullptr) finish_checkpoints();
  return true;
}

bool BaselineDecoder::is_intact(std::span<const std::byte> jpeg, const BaselineHeader& header) {
  if (!build_tables(header, JpegDct::ifast)) return false;
  scan_ = scan_of(jpeg, header);
  window_ = mcu_window(header, {0, 0, 1, 1});
  if (!seek({}, scan_.size())) return false;
  bytes_.extend_to(scan_.size());  // This may move the bytes.
  state_.reader.start(bytes_.data(), 0);
  extend();
  if (!skip_scan(state_, window_.rows * window_.columns * state_.blocks) || read_past_end())
    return false;
  const std::size_t read_bits = state_.reader.position(bytes_.data());
  if (bytes_.size() * 8 >= read_bits + 8) return false;
  const std::span<const std::uint8_t> trailing = scan_.subspan(bytes_.scan_position(bytes_.size()));
  return trailing.size() >= 2 && trailing[0] == 0xFF && trailing[1] == kEndOfImage;
}

bool BaselineDecoder::build_tables(const BaselineHeader& header, JpegDct dct) {
  state_.blocks = 0;
  const auto components = static_cast<std::size_t>(header.components);
  for (std::size_t c = 0; c < components; ++c) {
    const BaselineHeader::Component& component = header.component[c];
    HuffmanTable& dc = tables_[2 * c];
    HuffmanTable& ac = tables_[2 * c + 1];
    if (!dc.build(component.dc, HuffmanTable::Kind::dc) ||
        !ac.build(component.ac, HuffmanTable::Kind::ac)) {
      return false;
    }
    std::array<std::int16_t, 64>& scaled = quantizers_[c].values;
    scale_quantizers(component.quantizers, dct, scaled);
    const int blocks = c == 0 ? header.luma_columns * header.luma_rows : 1;
    for (int b = 0; b < blocks; ++b, ++state_.blocks) {
      state_.block[state_.blocks] = {&dc, &ac, c};
      std::int16_t* out = state_.quantizers[state_.blocks / 2].values + state_.blocks % 2 * 8;
      for (std::size_t i = 0; i < 64; ++i) out[i / 8 * 16 + i % 8] = scaled[i];
    }
  }
  return true;
}

void BaselineDecoder::prepare_strips(const BaselineHeader& header) {
  const std::size_t mcus = window_.end_column - window_.first_column;
  for (std::size_t c = 0; c < static_cast<std::size_t>(header.components); ++c) {
    Strip& strip = strips_[c];
    const bool subsampled = header.luma_rows == 2;
    const auto columns = static_cast<std::size_t>(c == 0 ? header.luma_columns : 1);
    strip.stride = mcus * columns * 8 + kBlockRowSlack + kLeftSlack;
    strip.overlap_rows = !subsampled ? 0 : c == 0 ? 1 : 2;
    strip.rows = static_cast<std::size_t>(c == 0 ? header.luma_rows : 1) * 8;
    grow(strip.samples,
         kLeftSlack + (strip.overlap_rows + strip.rows) * strip.stride + kKernelSlack);
  }
  const std::size_t chroma = mcus * 8;
  grow(blended_, kLeftSlack + chroma + kKernelSlack);
  for (auto& upsampled : upsampled_) grow(upsampled, 2 * chroma + kKernelSlack);
}

// ---- The scan ----

/// Continues reading at `point`. @param end only the first `end` bytes of the scan will be read.
bool BaselineDecoder::seek(const ScanCheckpoint& point, std::size_t end) {
  if (point.bit / 8 >= end) return false;
  scan_end_ = end;
  bytes_.start(scan_.first(end), point.bit / 8);
  bytes_.extend_to(kMcuBytes);
  state_.reader.start(bytes_.data(), static_cast<unsigned>(point.bit % 8));
  state_.dc = point.dc;
  return true;
}

/// Makes sure that the next MCU is completely in memory.
void BaselineDecoder::extend() {
  const auto read = static_cast<std::size_t>(state_.reader.next - bytes_.data());
  if (!bytes_.ended()) bytes_.extend_to(read + 2 * kMcuBytes);
  state_.reader.next = bytes_.data() + read;
  // At the end of the scan, an MCU may continue into zeros; read_past_end() detects this
  // afterwards.
  state_.limit = bytes_.data() + bytes_.size();
  state_.limit = bytes_.ended() ? state_.limit + sizeof(std::uint64_t) : state_.limit - kMcuBytes;
}

/// Whether bits were read that the scan does not contain. Also true if no marker follows the scan,
/// because libjpeg, which reads ahead, would run out of data.
bool BaselineDecoder::read_past_end() const {
  const bool is_full_scan = scan_end_ == scan_.size();
  return (bytes_.is_truncated() && is_full_scan) ||
         (bytes_.ended() && state_.reader.position(bytes_.data()) > bytes_.size() * 8);
}

template <typename Run>
bool BaselineDecoder::read_mcus(std::size_t mcus, const Run& run) {
  while (mcus > 0) {
    extend();
    const ScanProgress progress = run(mcus);
    if (progress.damaged || progress.mcus == 0 || read_past_end()) return false;
    mcus -= progress.mcus;
  }
  return true;
}

/// Skips over MCUs [first, end) of a row, and records checkpoints if they were requested.
bool BaselineDecoder::skip(std::size_t row, std::size_t first, std::size_t end) {
  return read_range(row, first, end, [this](std::size_t mcus) { return skip_mcus(state_, mcus); });
}

template <typename Run>
bool BaselineDecoder::read_range(std::size_t row, std::size_t first, std::size_t end,
                                 const Run& run) {
  if (request_.points == nullptr) return read_mcus(end - first, run);
  for (std::size_t at = first; at < end;) {
    if (at % request_.interval == 0) note_checkpoint(row, at);
    const std::size_t next = std::min(end, (at / request_.interval + 1) * request_.interval);
    if (!read_mcus(next - at, run)) return false;
    at = next;
  }
  return true;
}

bool BaselineDecoder::decode_row(std::size_t row, JpegDct dct, JpegCheckpoints checkpoints) {
  const std::size_t first = window_.first_column, end = window_.end_column;
  if (checkpoints.empty()) {
    if (!skip(row, 0, first)) return false;
  } else if (!seek_to_row(row, checkpoints)) {
    return false;
  }
  set_targets();
  const auto run = [&](std::size_t mcus) { return decode_mcus(state_, mcus, dct, targets_); };
  if (!read_range(row, first, end, run)) return false;
  const bool is_last = row + 1 == window_.end_row && request_.points == nullptr;
  return is_last || !checkpoints.empty() || skip(row, end, window_.columns);
}

/// Prepares `segments_` for the window. @return whether it can decode the window.
bool BaselineDecoder::begin_segments(const JpegCheckpoints& checkpoints, std::size_t components) {
  if (checkpoints.empty() || request_.points != nullptr) return false;
  SegmentedScan scan{
      .bytes = scan_, .checkpoints = checkpoints, .window = window_, .mcu_blocks = state_.blocks};
  for (std::size_t b = 0; b < state_.blocks; ++b) scan.component[b] = state_.block[b].component;
  return segments_.begin(scan, std::span(tables_).first(2 * components));
}

bool BaselineDecoder::decode_segments(const BaselineHeader& header, std::size_t row, JpegDct dct) {
  LaneBlock* block = segments_.decode_row(row);
  if (block == nullptr) {
    segments_.cancel();
    return false;
  }
  const std::size_t mcus = window_.end_column - window_.first_column;
  const auto components = static_cast<std::size_t>(luma_only_ ? 1 : header.components);
  for (std::size_t c = 0; c < components; ++c) {
    const auto columns = static_cast<std::size_t>(c == 0 ? header.luma_columns : 1);
    const auto rows = static_cast<std::size_t>(c == 0 ? header.luma_rows : 1);
    Strip& strip = strips_[c];
    for (std::size_t y = 0; y < rows; ++y, block += columns) {
      transform_blocks({.first = block,
                        .count = mcus * columns,
                        .columns = columns,
                        .mcu_blocks = state_.blocks,
                        .quantizers = &quantizers_[c],
                        .samples = strip.row(strip.overlap_rows + 8 * y),
                        .stride = strip.stride},
                       dct);
    }
  }
  return true;
}

/// Seeks to the window's first MCU in a row from the nearest checkpoint at or before it.
bool BaselineDecoder::seek_to_row(std::size_t row, JpegCheckpoints checkpoints) {
  const std::size_t in_row = checkpoints_in_row(window_.columns, checkpoints.interval);
  const std::size_t start = window_.first_column / checkpoints.interval;
  const std::size_t past =
      row * in_row + std::min(in_row, checkpoints_in_row(window_.end_column, checkpoints.interval));
  std::size_t end = scan_.size();
  if (past < checkpoints.points.size()) {
    // Include the byte in which the next segment begins, and a zero that may be stuffed after it.
    end = std::min(end, ScanCheckpoint::unpacked(checkpoints.points[past]).bit / 8 + 2);
  }
  return seek(ScanCheckpoint::unpacked(checkpoints.points[row * in_row + start]), end) &&
         skip(row, start * checkpoints.interval, window_.first_column);
}

void BaselineDecoder::note_checkpoint(std::size_t row, std::size_t column) {
  const std::size_t index =
      row * checkpoints_in_row(window_.columns, request_.interval) + column / request_.interval;
  const std::size_t position = state_.reader.position(bytes_.data());
  const ScanCheckpoint point{.bit = bytes_.scan_position(position / 8) * 8 + position % 8,
                             .dc = state_.dc};
  const std::optional<std::uint64_t> packed = point.packed();
  // If one checkpoint cannot be packed, finish_checkpoints() drops all of them.
  if (packed && request_.points->size() == index) request_.points->push_back(*packed);
}

void BaselineDecoder::finish_checkpoints() {
  bool complete = true;
  for (std::size_t row = window_.end_row; row < window_.rows && complete; ++row)
    complete = skip(row, 0, window_.columns);
  const std::size_t all = window_.rows * checkpoints_in_row(window_.columns, request_.interval);
  if (!complete || request_.points->size() != all) request_.points->clear();
}

// ---- Samples to pixels ----

void BaselineDecoder::set_targets() {
  for (std::size_t b = 0; b < state_.blocks; ++b) {
    const std::size_t component = state_.block[b].component;
    Strip& strip = strips_[component];
    // Luma blocks come row by row; chroma has one block.
    const std::size_t luma_blocks = state_.blocks == 1 ? 1 : state_.blocks - 2;
    const std::size_t in_row = component == 0 && luma_blocks > 1 ? 2 : 1;
    std::uint8_t* const at = strip.row(strip.overlap_rows + (component == 0 ? b / in_row : 0) * 8) +
                             (component == 0 ? b % in_row * 8 : 0);
    targets_[b] = {at, strip.stride, in_row * 8};
  }
}

void BaselineDecoder::save_last_rows() {
  for (Strip& strip : strips_) {
    for (std::size_t i = 0; i < strip.overlap_rows; ++i)
      std::memcpy(strip.row(i), strip.row(strip.rows + i), strip.stride - kLeftSlack);
  }
}

/// Writes the rows of the region whose samples are now complete.
void BaselineDecoder::emit_rows(const BaselineHeader& header, const Rect& region,
                                std::size_t mcu_row) {
  const int mcu_height = header.luma_rows * 8;
  const int top = static_cast<int>(mcu_row) * mcu_height;
  int first = top, end = top + mcu_height;
  if (header.luma_rows == 2) {
    // The last row also depends on the chroma of the next row of MCUs, so it is written after that
    // is decoded.
    first -= 1;
    if (mcu_row + 1 < window_.rows) end -= 1;
  }
  first = std::max(first, region.row);
  end = std::min(end, region.row + region.height);
  for (int y = first; y < end; ++y) emit_row(header, region, y, mcu_row);
}

void BaselineDecoder::emit_row(const BaselineHeader& header, const Rect& region, int y,
                               std::size_t mcu_row) {
  const auto width = static_cast<std::size_t>(region.width);
  std::uint8_t* const out = pixels_ + static_cast<std::size_t>(y - region.row) * stride_;
  const std::size_t left = static_cast<std::size_t>(region.column) -
                           window_.first_column * 8 * static_cast<std::size_t>(header.luma_columns);
  const int top = static_cast<int>(mcu_row) * header.luma_rows * 8;
  Strip& luma = strips_[0];
  const int row = y - top + static_cast<int>(luma.overlap_rows);
  const std::uint8_t* const samples = luma.row(static_cast<std::size_t>(row)) + left;
  if (is_grey(header)) {
    if (as_planes_) {
      std::memcpy(out, samples, width);
    } else {
      grey_to_rgb(samples, width, out);
    }
    return;
  }
  const std::uint8_t* const blue = chroma_row(header, 1, y, mcu_row) + left;
  const std::uint8_t* const red = chroma_row(header, 2, y, mcu_row) + left;
  if (as_planes_) {
    const std::size_t plane = static_cast<std::size_t>(region.height) * stride_;
    ycc_to_planes(samples, blue, red, width, {out, out + plane, out + 2 * plane});
  } else {
    ycc_to_rgb(samples, blue, red, width, out);
  }
}

/// The chroma samples of image row y, one per pixel, from the window's first column on.
const std::uint8_t* BaselineDecoder::chroma_row(const BaselineHeader& header, std::size_t component,
                                                int y, std::size_t mcu_row) {
  Strip& strip = strips_[component];
  // The chroma row of the image that is row 0 of the strip.
  const int top = static_cast<int>(mcu_row) * 8 - static_cast<int>(strip.overlap_rows);
  const auto at = [&](int row) { return strip.row(static_cast<std::size_t>(row - top)); };
  if (header.luma_columns == 1) return at(y);
  const auto image_columns = static_cast<std::size_t>((header.width + 1) / 2);
  const std::size_t columns =
      std::min(window_.end_column * 8, image_columns) - window_.first_column * 8;
  std::uint8_t* const upsampled = upsampled_[component - 1].data();
  if (header.luma_rows == 1) {
    std::uint8_t* const row = at(y);
    row[-1] = row[0];
    row[columns] = row[columns - 1];
    upsample_h2v1(row, columns, upsampled);
    return upsampled;
  }
  const int last = (header.height + 1) / 2 - 1;
  const int near = y / 2;
  const int far = std::clamp(y % 2 == 0 ? near - 1 : near + 1, 0, last);
  std::uint16_t* const blended = blended_.data() + kLeftSlack;
  blend_rows(at(near), at(far), columns, blended);
  blended[-1] = blended[0];
  blended[columns] = blended[columns - 1];
  upsample_h2v2(blended, columns, upsampled);
  return upsampled;
}

}  // namespace precast::data
