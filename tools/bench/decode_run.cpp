#include "tools/bench/decode_run.h"

#include <fmt/format.h>

#include <future>
#include <vector>

#include "data/decode/jpeg_decoder.h"
#include "data/resample/resize.h"
#include "data/transforms/image_pipeline.h"
#include "framework/core/error.h"
#include "framework/core/rng.h"
#include "tools/cli/stopwatch.h"

namespace precast::tools {
namespace {

void add(DecodeWork& sum, const DecodeWork& other) {
  sum.images += other.images;
  sum.jpeg_bytes += other.jpeg_bytes;
  sum.pixels += other.pixels;
  sum.decode_seconds += other.decode_seconds;
  sum.resize_seconds += other.resize_seconds;
}

/// Returns the region to decode in a round, which is the same for every decoder.
data::Rect choose_region(bool crop, const StoredJpeg& jpeg, std::uint32_t round,
                         std::uint64_t number) {
  if (!crop) return {0, 0, jpeg.height, jpeg.width};
  static const data::ImagePipeline pipeline = data::standard_train_pipeline();
  RandomStream random(0, round, number, RandomUse::crop);
  return pipeline.crop->choose(jpeg.height, jpeg.width, random);
}

/// Calls `decode`. @throws DataError of `decode`, with the name of the image added.
template <typename Decode>
auto decode_named(const StoredJpeg& jpeg, Decode decode) {
  try {
    return decode();
  } catch (const DataError& error) {
    throw DataError(fmt::format("{}: {}", jpeg.name, error.what()));
  }
}

/// The decoding state of one thread.
class DecodeThread {
 public:
  DecodeThread(const DecodeTask& task, const DecodeMode& mode)
      : task_(task),
        mode_(mode),
        decoder_({.accurate_dct = task.accurate_dct,
                  .libjpeg_only = mode.decoder->libjpeg_only,
                  .no_lanes = mode.decoder->no_lanes}),
        out_(static_cast<std::size_t>(task.image_size_px) *
             static_cast<std::size_t>(task.image_size_px) * 3) {}

  DecodeWork decode(std::size_t number, std::uint32_t round) {
    const StoredJpeg& jpeg = task_.jpegs[number];
    const data::Rect region = choose_region(mode_.crop, jpeg, round, number);
    data::JpegCheckpoints checkpoints;
    if (mode_.decoder->indexed) checkpoints = {task_.interval, task_.checkpoints[number]};
    const int side = task_.image_size_px;
    constexpr auto kFilter = data::ResizeFilter::area;
    // The same choice as in the loader.
    const bool as_planes =
        data::Resizer::prefers_planes(region.height, region.width, side, side, kFilter);
    const double begin = thread_cpu_seconds();
    const data::DecodedPixels pixels = decode_named(jpeg, [&]() -> data::DecodedPixels {
      if (as_planes)
        return decoder_.decode_planes(jpeg.bytes, jpeg.height, jpeg.width, region, checkpoints);
      return decoder_.decode(jpeg.bytes, jpeg.height, jpeg.width, region, checkpoints);
    });
    const double decoded = thread_cpu_seconds();
    resizer_.resize(pixels, side, side, /*flip=*/false, kFilter, {}, out_.data());
    const double resized = thread_cpu_seconds();
    return {1, static_cast<double>(jpeg.bytes.size()),
            static_cast<double>(region.height) * region.width, decoded - begin, resized - decoded};
  }

 private:
  const DecodeTask& task_;
  const DecodeMode& mode_;
  data::JpegDecoder decoder_;
  data::Resizer resizer_;
  std::vector<std::byte> out_;
};

/// Decodes one thread's share of the images repeatedly until the time is over.
DecodeWork decode_share(const DecodeTask& task, const DecodeMode& mode, std::uint32_t round,
                        double seconds, int thread) {
  DecodeThread decoder(task, mode);
  DecodeWork work;
  const Stopwatch watch;
  do {
    for (auto i = static_cast<std::size_t>(thread); i < task.jpegs.size();
         i += static_cast<std::size_t>(task.threads))
      add(work, decoder.decode(i, round));
  } while (watch.seconds() < seconds);
  return work;
}

}  // namespace

std::size_t DecodeTask::find_checkpoints() {
  data::JpegDecoder decoder({.accurate_dct = accurate_dct});
  std::size_t bytes = 0;
  for (const StoredJpeg& jpeg : jpegs) {
    auto& found = checkpoints.emplace_back();
    decode_named(jpeg, [&] {
      return decoder.decode(jpeg.bytes, jpeg.height, jpeg.width, {0, 0, jpeg.height, jpeg.width},
                            interval, found);
    });
    bytes += found.size() * sizeof(std::uint64_t);
  }
  return bytes;
}

DecodeWork decode_jpegs(const DecodeTask& task, const DecodeMode& mode, std::uint32_t round,
                        double seconds) {
  const Stopwatch watch;
  std::vector<std::future<DecodeWork>> shares;
  for (int thread = 0; thread < task.threads; ++thread) {
    shares.push_back(std::async(std::launch::async, [&, thread] {
      return decode_share(task, mode, round, seconds, thread);
    }));
  }
  DecodeWork all;
  for (std::future<DecodeWork>& share : shares) add(all, share.get());
  all.seconds = watch.seconds();
  return all;
}

}  // namespace precast::tools
