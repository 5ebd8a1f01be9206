// The kernels of batch_norm_*.cu for kernels_test.
#include "tests/support/cuda_on_host.h"
// Must be included after cuda_on_host.h.
#include "models/cuda/batch_norm_backward.cu"
#include "models/cuda/batch_norm_forward.cu"
