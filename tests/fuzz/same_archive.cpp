#include "tests/fuzz/same_archive.h"

#include <algorithm>

#include "framework/core/error.h"
#include "tests/fuzz/targets.h"

namespace precast::fuzz {

void check_records(const TensorArchive& archive) {
  for (const TensorRecord& record : archive.records) {
    require(byte_count(record.dtype, record.shape) == record.bytes.size(),
            "a tensor's bytes fill its shape");
    touch(record.bytes);
  }
}

void check_same(const TensorArchive& a, const TensorArchive& b) {
  require(a.metadata == b.metadata, "the metadata survives a round trip");
  require(a.records.size() == b.records.size(), "no tensor is lost or added by a round trip");
  for (std::size_t i = 0; i < a.records.size(); ++i) {
    const TensorRecord &x = a.records[i], &y = b.records[i];
    require(x.name == y.name && x.dtype == y.dtype && x.shape == y.shape &&
                std::ranges::equal(x.bytes, y.bytes),
            "a tensor survives a round trip");
  }
}

}  // namespace precast::fuzz
