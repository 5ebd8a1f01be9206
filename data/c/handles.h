#pragma once

#include <functional>
#include <memory>
#include <mutex>
#include <string>

#include "data/beton/reader.h"
#include "data/c/status.h"
#include "data/loader/host_batch.h"
#include "data/loader/loader.h"

/// An open dataset. Immutable.
struct precast_data_dataset : precast::data::c::ProcessBound {
  /// Shared with the loaders, unless a file is on a server.
  std::shared_ptr<const precast::data::BetonReader> reader;
  /// Opens the same files again.
  std::function<std::shared_ptr<const precast::data::BetonReader>()> open_again;
  std::string info;
};

struct precast_data_loader : precast::data::c::ProcessBound {
  std::shared_ptr<const precast::data::BetonReader> reader;
  std::unique_ptr<precast::data::Loader> loader;
  std::string info;
  std::int64_t image_size_px = 0;
  int rank = 0;
  int world = 1;
  /// Locked during each call that returns a status.
  std::mutex mutex;
  std::string statistics;
};

struct precast_data_batch : precast::data::c::ProcessBound {
  precast::data::HostBatch batch;
};
