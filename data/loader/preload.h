#pragma once

#include "framework/core/export.h"

namespace precast::data {

class BetonReader;

/// Brings a mapped file into memory before training starts: the page cache holds all of it and this
/// process's page tables point there, so that no sample waits for a disk or a page fault.
/// @throws ConfigError stating both sizes if the file is larger than nine tenths of the memory that
/// this process may use (including the limit of its control group); IoError if the kernel cannot
/// read it.
PRECAST_API void preload(const BetonReader& reader);

}  // namespace precast::data
