// Found before Highway's file of this name. Debian 12's Highway 1.0.3 lists avxvnni among the
// features of HWY_AVX3_DL and means avx512vnni: Ice Lake and Zen 4 have this target and no avxvnni,
// and clang's code for it ends there with SIGILL. No include guard: Highway includes it once for
// each instruction set.
#pragma GCC system_header
#include_next <hwy/ops/set_macros-inl.h>

#if HWY_TARGET == HWY_AVX3_DL && HWY_MAJOR == 1 && HWY_MINOR == 0 && HWY_PATCH <= 3
#undef HWY_TARGET_STR
#define HWY_TARGET_STR \
  HWY_TARGET_STR_AVX3  \
  ",vpclmulqdq,avx512vbmi,avx512vbmi2,vaes,avx512vnni,avx512bitalg,avx512vpopcntdq"
#endif
