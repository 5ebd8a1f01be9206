#pragma once

/// Marks the symbols that a shared library of precast exports; all others are hidden. One macro
/// serves all libraries: on ELF, building a library and using it need the same attribute.
#define PRECAST_API __attribute__((visibility("default")))
