#pragma once

/// Marks what a shared library of precast offers; everything else stays hidden.
/// One macro serves all libraries: on ELF the same attribute is right when building and when using.
#define PRECAST_API __attribute__((visibility("default")))
