#pragma once

/// Marks a function or class that a shared library of precast exports; the build hides all other
/// symbols. A single macro is enough for all libraries: unlike Windows with dllexport and
/// dllimport, ELF needs the same attribute in the library and in the programs that use it.
#define PRECAST_API __attribute__((visibility("default")))
