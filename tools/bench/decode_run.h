#pragma once

#include <array>
#include <cstdint>
#include <string_view>
#include <vector>

#include "tools/bench/stored_jpegs.h"

namespace precast::tools {

/// A decoder by its name: another one is another line.
struct NamedDecoder {
  std::string_view name;
  bool libjpeg_only = false;
  /// Whether it knows where in a scan it can begin.
  bool indexed = false;
};
inline constexpr std::array kDecoders = {NamedDecoder{"libjpeg", true}, NamedDecoder{"own"},
                                         NamedDecoder{"indexed", false, true}};

/// What is decoded by which decoder.
struct DecodeMode {
  const NamedDecoder* decoder = nullptr;
  /// Only a random crop, as training does; else the whole image.
  bool crop = false;
};

/// What all modes share.
struct DecodeTask {
  const std::vector<StoredJpeg>& jpegs;
  int threads = 1;
  /// What is decoded is resized to squares of this side.
  int image_size_px = 176;
  bool accurate_dct = false;
  /// Of each image, every `interval` MCUs; for decoders that are indexed.
  std::size_t interval = 0;
  std::vector<std::vector<std::uint64_t>> checkpoints{};

  /// Finds them. @return their bytes.
  std::size_t find_checkpoints();
};

/// What threads have done. Times are CPU seconds of the threads themselves.
struct DecodeWork {
  std::int64_t images = 0;
  double jpeg_bytes = 0;
  double pixels = 0;
  double decode_seconds = 0;
  double resize_seconds = 0;
  /// On the wall, of all threads together.
  double seconds = 0;
};

/// Decodes and resizes all images, again and again until `seconds` are over, at least once.
/// @param round chooses the crops: the same for every decoder.
/// @throws DataError if one is damaged.
[[nodiscard]] DecodeWork decode_jpegs(const DecodeTask& task, const DecodeMode& mode,
                                      std::uint32_t round, double seconds);

}  // namespace precast::tools
