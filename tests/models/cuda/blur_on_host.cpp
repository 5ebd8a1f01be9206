// The kernels of blur.cu for kernels_test.
#include "tests/support/cuda_on_host.h"
// After it.
#include "models/cuda/blur.cu"
