#pragma once

#include <array>
#include <cstdint>
#include <string_view>
#include <vector>

#include "tools/bench/stored_jpegs.h"

namespace precast::tools {

/// A decoder and its name. To add one, add a line to kDecoders.
struct NamedDecoder {
  std::string_view name;
  bool libjpeg_only = false;
  /// Whether it can start in the middle of a scan.
  bool indexed = false;
  /// Whether it decodes the parts of a scan one after the other instead of interleaved.
  bool no_lanes = false;
};
inline constexpr std::array kDecoders = {NamedDecoder{"libjpeg", true}, NamedDecoder{"own"},
                                         NamedDecoder{"indexed", false, true},
                                         NamedDecoder{"indexed_no_lanes", false, true, true}};

/// The part of an image that is decoded, and the decoder.
struct DecodeMode {
  const NamedDecoder* decoder = nullptr;
  /// Whether to decode only a random crop, as training does, instead of the whole image.
  bool crop = false;
};

/// Settings that all modes share.
struct DecodeTask {
  const std::vector<StoredJpeg>& jpegs;
  int threads = 1;
  /// Decoded pixels are resized to squares of this side.
  int image_size_px = 176;
  bool accurate_dct = false;
  /// MCUs between two positions of the JPEG index.
  std::size_t interval = 0;
  /// The JPEG index of each image. Indexed decoders need it.
  std::vector<std::vector<std::uint64_t>> checkpoints{};

  /// Fills `checkpoints`. @return their size in bytes.
  std::size_t find_checkpoints();
};

/// The work of one or more threads. Times are CPU-seconds of these threads, except for `seconds`.
struct DecodeWork {
  std::int64_t images = 0;
  double jpeg_bytes = 0;
  double pixels = 0;
  double decode_seconds = 0;
  double resize_seconds = 0;
  /// Wall-clock time of the whole measurement.
  double seconds = 0;
};

/// Decodes and resizes all images repeatedly until `seconds` have passed, at least once.
/// @param round selects the crops, which are the same for every decoder.
/// @throws DataError if an image is damaged.
[[nodiscard]] DecodeWork decode_jpegs(const DecodeTask& task, const DecodeMode& mode,
                                      std::uint32_t round, double seconds);

}  // namespace precast::tools
