// Compiles the kernels of planned_images.cu for the host.
#include "tests/support/cuda_on_host.h"
// Must be included after cuda_on_host.h.
#include "data/torch/cuda/planned_images.cu"
