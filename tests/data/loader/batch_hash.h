#pragma once

#include <zlib.h>

#include <cstdint>
#include <vector>

#include "data/loader/host_batch.h"
#include "data/loader/loader.h"

namespace precast::test {

/// The hash of all fields and sample ids of a batch.
inline unsigned long hash(const data::HostBatch& batch) {
  unsigned long crc = 0;
  const auto add = [&](const void* data, std::size_t bytes) {
    crc = ::crc32(crc, static_cast<const Bytef*>(data), static_cast<uInt>(bytes));
  };
  for (const data::HostTensor& field : batch.fields) add(field.data, field.bytes());
  add(batch.sample_ids.data(), batch.sample_ids.size() * sizeof(std::uint64_t));
  return crc;
}

/// Runs a pass. @return the hash of each batch.
inline std::vector<unsigned long> hashes_of_pass(data::Loader& loader,
                                                 const EpochRequest& request) {
  loader.begin_epoch(request);
  std::vector<unsigned long> all;
  while (const auto batch = loader.next()) all.push_back(hash(*batch));
  return all;
}

}  // namespace precast::test
