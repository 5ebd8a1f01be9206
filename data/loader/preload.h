#pragma once

#include <atomic>

#include "framework/core/export.h"

namespace precast::data {

class BetonReader;

/// Loads a mapped file into memory before training starts: it is then completely in the page cache
/// and in this process's page tables, so that no sample waits for a disk or a page fault. Files on
/// a server are fetched first.
/// @throws ConfigError stating both sizes if the file is larger than nine tenths of the memory that
/// this process may use (the limit of its control group counts too); IoError if the kernel cannot
/// read it; the errors of fetch_all().
/// @param cancel if it becomes true, the function returns soon and the rest is not loaded; null:
/// never.
PRECAST_API void preload(const BetonReader& reader, const std::atomic<bool>* cancel = nullptr);

}  // namespace precast::data
