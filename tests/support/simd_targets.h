#pragma once

// Some kernels are also compiled for AVX-512 with VBMI and VNNI. Highway lists this target only
// with this macro.
#ifndef HWY_WANT_AVX3_DL
#define HWY_WANT_AVX3_DL
#endif
#include <hwy/targets.h>

#include <cstddef>

namespace precast::test {

/// Runs check(name) once with each instruction set for which this program is compiled and which the
/// CPU has, including the target without SIMD. Do not call it while other threads use Highway.
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
