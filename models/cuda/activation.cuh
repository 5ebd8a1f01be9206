#pragma once

// Code shared by the kernels in this folder. For .cu files only.

#include "framework/core/cuda_values.cuh"
#include "models/cuda/activation.h"
