#pragma once

#include <csetjmp>
#include <cstddef>
#include <cstdint>
#include <cstdio>

// clang-format off: jpeglib.h needs the headers above it.
#include <jpeglib.h>
// clang-format on

namespace precast::data {

/// Limits for JPEGs of several scans. libjpeg keeps all coefficients of such a JPEG in memory and
/// processes all of them for each scan, even if the scan has only a few bytes. Encoders write about
/// ten scans.
inline constexpr std::uint64_t kMaxCoefficientBytes = std::uint64_t{1} << 28;
inline constexpr int kMaxScans = 200;

/// Call after jpeg_read_header(). @throws DataError for a JPEG of several scans whose coefficients
/// take more than kMaxCoefficientBytes.
void check_coefficients(const jpeg_decompress_struct& decompress);

/// Returns a value for jpeg_decompress_struct::progress that stops decoding after kMaxScans scans.
/// @tparam Errors the type to which `client_data` points; it has members `jump` and `text`
/// (JMSG_LENGTH_MAX characters).
template <typename Errors>
jpeg_progress_mgr scan_limit() {
  jpeg_progress_mgr progress{};
  progress.progress_monitor = [](j_common_ptr info) {
    if (reinterpret_cast<j_decompress_ptr>(info)->input_scan_number <= kMaxScans) return;
    auto* errors = static_cast<Errors*>(info->client_data);
    std::snprintf(errors->text, sizeof errors->text, "more than %d scans", kMaxScans);
    std::longjmp(errors->jump, 1);
  };
  return progress;
}

}  // namespace precast::data
