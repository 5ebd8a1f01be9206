#include "framework/core/archive/npy.h"

#include "framework/core/error.h"
#include "tests/fuzz/memory_file.h"
#include "tests/fuzz/targets.h"

namespace precast::fuzz {

void npy(Input input) {
  const NpyArray read = parse_npy(input, "input");
  require(byte_count(read.dtype, read.shape) == read.bytes.size(), "the bytes fill the shape");
  try {
    MemoryFile file;
    write_npy(MemoryFile::kPath, read.dtype, read.shape, read.bytes, file);
    const NpyArray again = parse_npy(file.bytes(), "round trip");
    require(read.dtype == again.dtype && read.shape == again.shape && read.bytes == again.bytes,
            "an array survives a round trip");
  } catch (const Error& error) {
    require(false, error.what());
  }
}

}  // namespace precast::fuzz
