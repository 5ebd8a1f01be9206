// The kernels of dual_norm.cu for kernels_test.
#include "tests/support/cuda_on_host.h"
// Must be included after cuda_on_host.h.
#include "models/cuda/dual_norm.cu"
