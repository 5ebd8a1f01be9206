#pragma once

// Kernels that ask for it are also compiled for AVX-512 with VBMI and VNNI.
#ifndef HWY_WANT_AVX3_DL
#define HWY_WANT_AVX3_DL
#endif
#include <hwy/targets.h>

#include <cstddef>

namespace precast::test {

/// Runs check(name) once with each instruction set that this program is compiled for and the CPU
/// has, including the one without SIMD. Do not call it while other threads use Highway.
/// @return the number of instruction sets.
template <typename Check>
std::size_t for_each_simd_target(Check check) {
  std::size_t count = 0;
  for (const std::int64_t target : hwy::SupportedAndGeneratedTargets()) {
    hwy::SetSupportedTargetsForTest(target);
    hwy::GetChosenTarget().Update(target);
    check(hwy::TargetName(target));
    ++count;
  }
  hwy::SetSupportedTargetsForTest(0);
  hwy::GetChosenTarget().DeInit();
  return count;
}

}  // namespace precast::test
