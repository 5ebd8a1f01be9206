#pragma once

/// Marks a function or class that a shared library of precast exports; the build hides all other
/// symbols. One macro is enough, because ELF uses the same attribute in a library and in its users;
/// Windows would need dllexport in one and dllimport in the other.
#define PRECAST_API __attribute__((visibility("default")))
