#pragma once

#include <chrono>
#include <cstdint>
#include <string>
#include <vector>

#include "data/beton/reader.h"
#include "data/loader/loader.h"
#include "data/transforms/pipeline.h"

namespace precast::tools {

/// The data that serve() loads and passes through a ring to training runs: all batches of a run
/// with one rank. This header does not include libtorch.
struct ServedData {
  const data::BetonReader& reader;
  const data::Pipeline& pipeline;
  data::LoaderOptions loader;
  /// Image size of each epoch, in pixels.
  std::vector<std::int64_t> image_size_px;
  std::string description;
};

struct ServeOptions {
  std::string name;
  /// Number of consumers to wait for.
  int consumers = 1;
  /// How long to wait for the other consumers after the first one has connected; 0: no limit.
  std::chrono::seconds max_wait{0};
  int slots = 4;
  /// Print a line of JSON after each pass and at the end: `{"event": "pass" or "end", "process",
  /// "epoch", "epochs", "samples_decoded", "samples_delivered", "consumers", "replaced_samples",
  /// "seconds", "cpu_seconds"}`. Samples are counted since the start of the process; times are
  /// measured from the start of loading.
  bool json = false;
};

/// Loads all epochs into a ring, from the earliest position that a consumer needs, and waits until
/// the consumers have read them.
/// @return 0, or the exit code after a signal.
/// @throws the errors of Loader and RingProducer; the consumers receive the same error.
[[nodiscard]] int serve(const ServedData& data, const ServeOptions& options);

}  // namespace precast::tools
