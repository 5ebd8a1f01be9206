#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "framework/core/export.h"

namespace precast {

/// The pieces of TensorBoard's event files, as bytes to append: records in TFRecord framing
/// (tensorflow/core/lib/io/record_writer.h: length, masked CRC-32C of the length, data, masked
/// CRC-32C of the data, all little-endian). Each record is an `Event` message
/// (tensorflow/core/util/event.proto), encoded by hand. TensorBoard reads files with `tfevents` in
/// their name.

/// CRC-32C (Castagnoli; RFC 3720, appendix B.4) of the bytes.
[[nodiscard]] PRECAST_API std::uint32_t crc32c(std::string_view bytes);

/// One named value of a step.
struct EventScalar {
  std::string_view tag;
  double value = 0;
};

/// The first bytes of an event file. @param wall_time in Unix seconds.
[[nodiscard]] PRECAST_API std::string event_file_head(double wall_time);

/// One record with all scalars of a step; values are stored as float32. @param wall_time in Unix
/// seconds.
[[nodiscard]] PRECAST_API std::string event_record(double wall_time, std::int64_t step,
                                                   std::span<const EventScalar> scalars);

/// Number of bytes of `file` before its first incomplete or damaged record, at which readers stop.
/// A crash may leave an incomplete record.
[[nodiscard]] PRECAST_API std::size_t intact_prefix_bytes(std::string_view file);

}  // namespace precast
