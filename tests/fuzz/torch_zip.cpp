#include "framework/core/archive/torch_zip.h"

#include "framework/core/error.h"
#include "tests/fuzz/memory_file.h"
#include "tests/fuzz/same_archive.h"
#include "tests/fuzz/targets.h"

namespace precast::fuzz {

void torch_zip(Input input) {
  const TensorArchive read = parse_torch_zip(input, "input");
  check_records(read);
  std::size_t owned = 0;
  for (const auto& bytes : read.owned) owned += bytes.size();
  require(owned <= input.size(), "copies never take more memory than the file");
  try {
    MemoryFile file;
    write_torch_zip(MemoryFile::kPath, read.records, read.metadata, file);
    check_same(read, parse_torch_zip(file.bytes(), "round trip"));
  } catch (const Error& error) {
    // Only a dict without tensors may be rejected: the writer can write it, but the reader cannot
    // read it.
    require(read.records.empty(), error.what());
  }
}

}  // namespace precast::fuzz
