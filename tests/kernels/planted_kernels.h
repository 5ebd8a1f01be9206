#pragma once

#include <cstddef>

namespace precast::test {

/// Kernels with known memory accesses, for tests of CountedMemory. Arrays are aligned to 16 bytes;
/// sizes are numbers of floats and multiples of 1024. `unneeded` may be null. Otherwise, the
/// kernel reads the first and the last float of each of its packs (four floats), and a compiler may
/// read complete packs.
void copy_by_packs(const float* in, const float* unneeded, float* out, std::size_t size);
/// Copies with memcpy(), 16 bytes at a time.
void copy_by_memcpy(const float* in, float* out, std::size_t size);
/// Adds values through shared memory, with several reads of each value.
void add_neighbours(const float* in, float* out, std::size_t size);
/// Adds with atomics: one sum per block of 256 values.
void add_up_blocks(const float* in, float* sums, std::size_t size);

}  // namespace precast::test
