#include "framework/core/archive/safetensors.h"

#include "framework/core/error.h"
#include "tests/fuzz/memory_file.h"
#include "tests/fuzz/same_archive.h"
#include "tests/fuzz/targets.h"

namespace precast::fuzz {

void safetensors(Input input) {
  const TensorArchive read = parse_safetensors(input, "input");
  check_records(read);
  try {
    MemoryFile file;
    write_safetensors(MemoryFile::kPath, read.records, read.metadata, file);
    check_same(read, parse_safetensors(file.bytes(), "round trip"));
  } catch (const Error& error) {
    require(false, error.what());
  }
}

}  // namespace precast::fuzz
