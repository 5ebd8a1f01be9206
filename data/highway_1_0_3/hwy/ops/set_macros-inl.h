// The compiler finds this file before Highway's file of the same name. Highway 1.0.3 in Debian 12
// lists avxvnni among the features of HWY_AVX3_DL where it means avx512vnni. Ice Lake and Zen 4
// support this target but not avxvnni; on them, clang's code for the target dies with SIGILL. There
// is no include guard, because Highway includes this file once for each instruction set.
#pragma GCC system_header
#include_next <hwy/ops/set_macros-inl.h>

#if HWY_TARGET == HWY_AVX3_DL && HWY_MAJOR == 1 && HWY_MINOR == 0 && HWY_PATCH <= 3
#undef HWY_TARGET_STR
#define HWY_TARGET_STR \
  HWY_TARGET_STR_AVX3  \
  ",vpclmulqdq,avx512vbmi,avx512vbmi2,vaes,avx512vnni,avx512bitalg,avx512vpopcntdq"
#endif
