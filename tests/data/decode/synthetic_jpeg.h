#pragma once

#include <cstdio>
#include <cstdlib>
// jpeglib.h needs std::FILE and std::size_t declared before it.
#include <jpeglib.h>

#include <cstdint>
#include <ostream>
#include <vector>

#include "data/image/image.h"
#include "framework/core/rng.h"
#include "tests/data/decode/pixel_copies.h"
#include "tests/data/sources/sample_images.h"

namespace precast::test {

/// The parameters of a JPEG that encode() creates with libjpeg.
struct SyntheticJpeg {
  int height = 64;
  int width = 64;
  int quality = 90;
  /// Sampling factors of luma. If `columns` is 0, the image is grey.
  int columns = 2;
  int rows = 2;
  bool optimized = false;
  int restart_interval = 0;
  /// Amplitude of the noise that is added to each sample; 0 leaves areas of one colour, whose
  /// blocks have few coefficients.
  int noise = 56;
  bool progressive = false;
};

inline void PrintTo(const SyntheticJpeg& kind, std::ostream* out) {
  *out << kind.height << "x" << kind.width << " q" << kind.quality << " " << kind.columns << "x"
       << kind.rows << (kind.optimized ? " optimized" : "")
       << (kind.progressive ? " progressive" : "") << " restart " << kind.restart_interval
       << " noise " << kind.noise;
}

/// The samples of a coarse pattern with noise, [height, width, channels].
inline std::vector<unsigned char> noisy_samples(const SyntheticJpeg& kind, int channels) {
  RandomStream random(7, 0, static_cast<std::uint64_t>(kind.width), RandomUse::test);
  std::vector<unsigned char> samples;
  for (int y = 0; y < kind.height; ++y) {
    for (int x = 0; x < kind.width; ++x) {
      for (int c = 0; c < channels; ++c) {
        const int coarse = ((x / 11 + y / 7 + c) % 3) * 100;
        const int fine =
            kind.noise == 0
                ? 0
                : static_cast<int>(random.below(static_cast<std::uint64_t>(kind.noise)));
        samples.push_back(static_cast<unsigned char>(coarse + fine));
      }
    }
  }
  return samples;
}

inline std::vector<std::byte> encode(const SyntheticJpeg& kind) {
  const int channels = kind.columns == 0 ? 1 : 3;
  return encode_jpeg(noisy_samples(kind, channels), kind.height, kind.width, channels,
                     [&](jpeg_compress_struct& state) {
                       jpeg_set_quality(&state, kind.quality, TRUE);
                       if (channels == 3) {
                         state.comp_info[0].h_samp_factor = kind.columns;
                         state.comp_info[0].v_samp_factor = kind.rows;
                       }
                       state.optimize_coding = kind.optimized ? TRUE : FALSE;
                       state.restart_interval = static_cast<unsigned>(kind.restart_interval);
                       if (kind.progressive) jpeg_simple_progression(&state);
                     });
}

/// The region of a trial: the complete image for trial 0, otherwise a random rectangle.
inline data::Rect region_of(const SyntheticJpeg& kind, int trial) {
  if (trial == 0) return {0, 0, kind.height, kind.width};
  RandomStream random(3, 0, static_cast<std::uint64_t>(trial), RandomUse::test);
  const auto draw = [&](int bound) {
    return static_cast<int>(random.below(static_cast<std::uint64_t>(bound)));
  };
  data::Rect region{draw(kind.height), draw(kind.width), 0, 0};
  region.height = 1 + draw(kind.height - region.row);
  region.width = 1 + draw(kind.width - region.column);
  return region;
}

}  // namespace precast::test
