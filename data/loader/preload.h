#pragma once

#include "framework/core/export.h"

namespace precast::data {

class BetonReader;

/// Loads a mapped file into memory before training starts: it is then completely in the page cache
/// and mapped by this process's page tables, so that no sample waits for a disk or a page fault.
/// @throws ConfigError stating both sizes if the file is larger than nine tenths of the memory that
/// this process may use (including the limit of its control group); IoError if the kernel cannot
/// read it.
PRECAST_API void preload(const BetonReader& reader);

}  // namespace precast::data
