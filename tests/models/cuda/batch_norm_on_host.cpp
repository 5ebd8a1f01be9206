// The kernels of batch_norm.cu for kernels_test.
#include "tests/support/cuda_on_host.h"
// After it.
#include "models/cuda/batch_norm.cu"
