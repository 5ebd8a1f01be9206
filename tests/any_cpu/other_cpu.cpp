// A library that is preloaded (LD_PRELOAD) into a program of the build. Two environment variables
// make the program see a smaller instruction set or a different number of cores:
//   PRECAST_TEST_SIMD   the best set that Highway may choose: none, SSSE3, SSE4, AVX2 or AVX3,
//                       which is AVX-512
//   PRECAST_TEST_CORES  the number of cores that sched_getaffinity() reports
// A variable that is unset or empty has no effect. precast itself has no such setting, because only
// tests need it.
#include <hwy/targets.h>
#include <sched.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string_view>

namespace {

struct Target {
  std::string_view name;
  std::int64_t bit;
};

constexpr Target kTargets[] = {{"none", HWY_SSSE3 << 1},
                               {"SSSE3", HWY_SSSE3},
                               {"SSE4", HWY_SSE4},
                               {"AVX2", HWY_AVX2},
                               {"AVX3", HWY_AVX3}};

std::string_view variable(const char* name) {
  const char* value = std::getenv(name);
  return value == nullptr ? "" : value;
}

__attribute__((constructor)) void limit_simd() {
  const std::string_view best = variable("PRECAST_TEST_SIMD");
  if (best.empty()) return;
  const auto* found = std::find_if(std::begin(kTargets), std::end(kTargets),
                                   [&](const Target& target) { return target.name == best; });
  if (found == std::end(kTargets)) {
    std::fprintf(stderr, "PRECAST_TEST_SIMD: expected none, SSSE3, SSE4, AVX2 or AVX3, got %s\n",
                 best.data());
    ::_exit(2);
  }
  // In Highway, better instruction sets have lower bits.
  hwy::DisableTargets(found->bit - 1);
}

}  // namespace

extern "C" int sched_getaffinity(pid_t process, std::size_t size, cpu_set_t* set) noexcept {
  const std::string_view cores = variable("PRECAST_TEST_CORES");
  if (cores.empty()) {
    const long written = ::syscall(SYS_sched_getaffinity, process, size, set);
    if (written < 0) return -1;
    // The kernel sets only the first bytes. Like the C library, clear the others.
    std::memset(reinterpret_cast<char*>(set) + written, 0,
                size - static_cast<std::size_t>(written));
    return 0;
  }
  const auto count = static_cast<std::size_t>(std::atoi(cores.data()));
  if (count > size * 8) {
    errno = EINVAL;
    return -1;
  }
  CPU_ZERO_S(size, set);
  for (std::size_t core = 0; core < count; ++core) CPU_SET_S(core, size, set);
  return 0;
}
