#include "data/decode/segment_decoder.h"

#include <algorithm>
#include <cstring>

#include "data/decode/bit_reader.h"
#include "data/decode/pixel_kernels.h"
#include "data/decode/unstuffed_bytes.h"

namespace precast::data {
namespace {

/// Target number of blocks per batch of rows (a batch has at least one row): few enough that their
/// coefficients (128 bytes per block) stay in the second-level cache, but enough that a batch has
/// segments for all lanes.
constexpr std::size_t kBatchBlocks = 2048;
/// Wider windows are decoded without lanes, to limit memory use.
constexpr std::size_t kMaxRowBlocks = 8192;
/// Bytes that follow a segment in memory, for the entries that a lane reads after the segment's
/// end.
constexpr std::size_t kTrailingBytes = 8;

template <typename T>
void grow(std::vector<T>& memory, std::size_t size) {
  if (memory.size() < size) memory.resize(std::max(size, memory.size() * 3 / 2));
}

struct Unstuffed {
  std::size_t size = 0;
  std::size_t read = 0;
  /// Whether the copy stopped before a 0xFF that is not followed by a stuffed zero.
  bool at_marker = false;
};

/// Copies the bytes of a scan without stuffed zeros. Writes up to 64 extra bytes.
Unstuffed unstuff(std::span<const std::uint8_t> in, std::uint8_t* out) {
  Unstuffed done;
  std::size_t& at = done.read;
  while (at < in.size()) {
    const std::size_t plain = copy_until_ff(in.data() + at, in.size() - at, out + done.size);
    at += plain;
    done.size += plain;
    if (at == in.size()) break;
    if (at + 1 == in.size() || in[at + 1] != 0) {
      done.at_marker = true;
      break;
    }
    out[done.size++] = 0xFF;
    at += 2;
  }
  return done;
}

void clear(LaneBlock& block) {
  std::fill_n(block.coefficients, 64, std::int16_t{0});
}

}  // namespace

bool SegmentDecoder::begin(const SegmentedScan& scan, std::span<const HuffmanTable> tables) {
  if (shape_.lanes == 0) return false;
  scan_ = scan;
  components_ = tables.size() / 2;
  const std::size_t interval = scan.checkpoints.interval;
  segments_ = checkpoints_in_row(scan.window.columns, interval);
  first_segment_ = scan.window.first_column / interval;
  end_segment_ = std::min(segments_, checkpoints_in_row(scan.window.end_column, interval));
  // Spare MCUs after each row, so that data that lanes decode past their ends does not reach the
  // next row.
  spare_mcus_ = (kMaxOverrun + scan.mcu_blocks - 1) / scan.mcu_blocks;
  const std::size_t row_blocks = (row_mcus() + spare_mcus_) * scan.mcu_blocks;
  if (row_blocks > kMaxRowBlocks) return false;
  lanes_.tables = table_cache_.find(tables, shape_.bits);
  if (lanes_.tables == nullptr) return false;
  // Divide the rows into batches of equal size.
  const std::size_t rows = scan.window.end_row - scan.window.first_row;
  const std::size_t batches = (rows * row_blocks + kBatchBlocks - 1) / kBatchBlocks;
  batch_rows_ = (rows + batches - 1) / batches;
  batch_begin_ = batch_end_ = scan.window.first_row;
  used_blocks_ = 0;
  fill_patterns(batch_rows_ * row_blocks + spare_mcus_ * scan.mcu_blocks);
  return true;
}

/// Number of MCUs from the first checkpoint that a row needs to the window's end.
std::size_t SegmentDecoder::row_mcus() const {
  return scan_.window.end_column - first_segment_ * scan_.checkpoints.interval;
}

void SegmentDecoder::fill_patterns(std::size_t blocks) {
  grow(blocks_, blocks);
  lanes_.blocks = blocks_.data();
  const std::size_t n = scan_.mcu_blocks;
  bool is_known = ac_.size() >= blocks && pattern_blocks_ == n;
  for (std::size_t i = 0; i < n && is_known; ++i) {
    is_known = ac_[i] == lanes_.tables->ac(scan_.component[i]) &&
               next_dc_[i] == lanes_.tables->dc(scan_.component[(i + 1) % n]);
  }
  if (is_known) return;
  pattern_blocks_ = n;
  grow(ac_, blocks);
  grow(next_dc_, blocks);
  for (std::size_t b = 0; b < ac_.size(); ++b) {
    ac_[b] = lanes_.tables->ac(scan_.component[b % n]);
    next_dc_[b] = lanes_.tables->dc(scan_.component[(b + 1) % n]);
  }
  lanes_.ac = ac_.data();
  lanes_.next_dc = next_dc_.data();
}

/// Index of the block after the last one of the row.
std::size_t SegmentDecoder::row_end(std::size_t row) {
  return static_cast<std::size_t>(row_blocks(row) - blocks_.data()) + row_mcus() * scan_.mcu_blocks;
}

LaneBlock* SegmentDecoder::row_blocks(std::size_t row) {
  const std::size_t mcu = spare_mcus_ + (row - batch_begin_) * (row_mcus() + spare_mcus_);
  return blocks_.data() + mcu * scan_.mcu_blocks;
}

ScanCheckpoint SegmentDecoder::point(std::size_t row, std::size_t segment) const {
  return ScanCheckpoint::unpacked(scan_.checkpoints.points[row * segments_ + segment]);
}

LaneBlock* SegmentDecoder::decode_row(std::size_t row) {
  if (row >= batch_end_ && (!plan_rows(row) || !run())) return nullptr;
  if (!add_up_dc(row)) return nullptr;
  const std::size_t skipped =
      scan_.window.first_column - first_segment_ * scan_.checkpoints.interval;
  return row_blocks(row) + skipped * scan_.mcu_blocks;
}

void SegmentDecoder::cancel() {
  std::for_each_n(blocks_.begin(), std::min(used_blocks_, blocks_.size()), clear);
}

// ---- From checkpoints to lanes ----

bool SegmentDecoder::plan_rows(std::size_t row) {
  batch_begin_ = row;
  batch_end_ = std::min(row + batch_rows_, scan_.window.end_row);
  used_bytes_ = 0;
  used_blocks_ = static_cast<std::size_t>(row_blocks(batch_end_) - blocks_.data());
  plan_.clear();
  for (; row < batch_end_; ++row) {
    auto block = static_cast<std::size_t>(row_blocks(row) - blocks_.data());
    for (std::size_t s = first_segment_; s < end_segment_; ++s) {
      if (!plan_segment(row, s, block)) return false;
      block += scan_.checkpoints.interval * scan_.mcu_blocks;
    }
  }
  lanes_.bytes = bytes_.data();
  return true;
}

bool SegmentDecoder::plan_segment(std::size_t row, std::size_t segment, std::size_t first_block) {
  const std::size_t interval = scan_.checkpoints.interval;
  const std::size_t begin = segment * interval;
  const std::size_t all = std::min(begin + interval, scan_.window.columns);
  const std::size_t end = std::min(all, scan_.window.end_column);
  const std::size_t blocks = (end - begin) * scan_.mcu_blocks;
  const ScanCheckpoint from = point(row, segment);
  const bool is_last = row * segments_ + segment + 1 == scan_.checkpoints.points.size();
  const ScanCheckpoint next = is_last ? ScanCheckpoint{} : point(row, segment + 1);

  Segment planned;
  planned.ends_exactly = !is_last && end == all;
  planned.row_end = row_end(row);
  planned.lane.bit = used_bytes_ * 8 + from.bit % 8;
  if (!is_last && next.bit <= from.bit) return false;
  if (!unstuff_segment(from.bit / 8, is_last ? nullptr : &next, blocks, planned)) return false;
  planned.lane.position = first_block * kBlockPositions - 1;
  planned.lane.end = (first_block + blocks) * kBlockPositions - 1;
  planned.lane.table = lanes_.tables->dc(0);
  plan_.push_back(planned);
  return true;
}

/// Copies the bytes of a segment. @param first position of the segment's first byte. @param next
/// the checkpoint at its end, or null for the scan's last segment. @return false if bytes are
/// missing.
bool SegmentDecoder::unstuff_segment(std::size_t first, const ScanCheckpoint* next,
                                     std::size_t blocks, Segment& out) {
  const std::size_t max_bytes = blocks * kBytesPerBlock + kBytesAhead;
  // The end of the scan's last segment is not known, so take twice the bytes that its blocks can
  // need: a stuffed zero may follow each byte.
  std::size_t end = next != nullptr ? next->bit / 8 : first + 2 * max_bytes;
  if (first >= scan_.bytes.size() || (next != nullptr && end >= scan_.bytes.size())) return false;
  end = std::min(end, scan_.bytes.size());
  grow(bytes_, used_bytes_ + (end - first) + max_bytes + kKernelSlack);
  std::uint8_t* const to = bytes_.data() + used_bytes_;
  const Unstuffed segment = unstuff(scan_.bytes.subspan(first, end - first), to);
  std::uint8_t* const tail = to + segment.size;
  if (next == nullptr) {
    if (end == scan_.bytes.size() && lacks_marker(scan_.bytes.subspan(first + segment.read)))
      return false;
    std::memset(tail, 0, kTrailingBytes);
    out.end_bit = (used_bytes_ + segment.size) * 8;
    used_bytes_ += segment.size + kTrailingBytes;
    return true;
  }
  if (segment.at_marker) return false;
  const std::size_t left = std::min(scan_.bytes.size() - end, 2 * kTrailingBytes);
  const std::size_t known = unstuff(scan_.bytes.subspan(end, left), tail).size;
  // The byte in which the segment ends must exist.
  if (next->bit % 8 != 0 && known == 0) return false;
  if (known < kTrailingBytes) std::memset(tail + known, 0, kTrailingBytes - known);
  out.end_bit = (used_bytes_ + segment.size) * 8 + next->bit % 8;
  used_bytes_ += segment.size + kTrailingBytes;
  return true;
}

// ---- Lanes ----

bool SegmentDecoder::run() {
  lanes_.damaged = false;
  std::array<Lane, LaneShape::kMaxLanes> lanes;
  std::array<const Segment*, LaneShape::kMaxLanes> of{};
  std::size_t live = 0, next = 0;
  const auto start = [&](std::size_t lane) {
    of[lane] = &plan_[next++];
    lanes[lane] = of[lane]->lane;
  };
  while (live < shape_.lanes && next < plan_.size()) start(live++);
  while (live > 0) {
    run_lanes(lanes_, {lanes.data(), live});
    if (lanes_.damaged) return false;
    for (std::size_t i = 0; i < live;) {
      if (lanes[i].position < lanes[i].end) {
        ++i;
      } else if (!finish(*of[i], lanes[i])) {
        return false;
      } else if (next < plan_.size()) {
        start(i++);
      } else {
        --live;
        lanes[i] = lanes[live];
        of[i] = of[live];
      }
    }
  }
  return true;
}

bool SegmentDecoder::finish(const Segment& segment, const Lane& lane) {
  // Entries decoded past the end of the row are cleared. All other entries past the segment's end
  // belong to the next segment of the row.
  for (std::size_t b = segment.row_end; b * kBlockPositions <= lane.position; ++b)
    clear(blocks_[b]);
  return segment.ends_exactly ? lane.end_bit == segment.end_bit : lane.end_bit <= segment.end_bit;
}

/// Turns differences into DC coefficients. @return false if they differ from the DC coefficients of
/// a checkpoint.
bool SegmentDecoder::add_up_dc(std::size_t row) {
  LaneBlock* block = row_blocks(row);
  std::array<int, 3> dc = point(row, first_segment_).dc;
  const auto is_same = [&](const ScanCheckpoint& next) {
    return std::equal(dc.begin(), dc.begin() + static_cast<std::ptrdiff_t>(components_),
                      next.dc.begin());
  };
  for (std::size_t s = first_segment_; s < end_segment_; ++s) {
    if (s > first_segment_ && !is_same(point(row, s))) return false;
    const std::size_t begin = s * scan_.checkpoints.interval;
    const std::size_t end = std::min(begin + scan_.checkpoints.interval, scan_.window.end_column);
    for (std::size_t mcu = begin; mcu < end; ++mcu) {
      for (std::size_t b = 0; b < scan_.mcu_blocks; ++b, ++block) {
        int& sum = dc[scan_.component[b]];
        sum = wrapped_sum(sum, block->coefficients[0]);
        block->coefficients[0] = static_cast<std::int16_t>(sum);
        if (mcu < scan_.window.first_column) clear(*block);
      }
    }
  }
  const std::size_t next = row * segments_ + end_segment_;
  const bool ends_at_next =
      next < scan_.checkpoints.points.size() &&
      (end_segment_ == segments_
           ? scan_.window.end_column == scan_.window.columns
           : scan_.window.end_column == end_segment_ * scan_.checkpoints.interval);
  return !ends_at_next || is_same(point(row, end_segment_));
}

}  // namespace precast::data
