#pragma once

/// Marks the symbols that a shared library of precast exports; all others are hidden. All libraries
/// share one macro, because on ELF the same attribute serves to build a library and to use it.
#define PRECAST_API __attribute__((visibility("default")))
