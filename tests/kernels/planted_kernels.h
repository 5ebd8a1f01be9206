#pragma once

#include <cstddef>

namespace precast::test {

/// Kernels with known accesses, for tests of CountedMemory. Arrays of floats, aligned to 16 bytes;
/// sizes are multiples of 1024. `unneeded` may be null; of it, the kernels read as many bytes as of
/// `in`.
void copy_by_packs(const float* in, const float* unneeded, float* out, std::size_t size);
/// By memcpy, 16 bytes at a time.
void copy_by_memcpy(const float* in, float* out, std::size_t size);
/// Through shared memory, with several reads of each value.
void add_neighbours(const float* in, float* out, std::size_t size);
/// By atomics; one sum per block of 256 values.
void add_up_blocks(const float* in, float* sums, std::size_t size);

}  // namespace precast::test
