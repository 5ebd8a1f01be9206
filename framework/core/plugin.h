#pragma once

/// The interface between a plug-in and the program that loads it. Authors include
/// framework/api/plugin.h (models, methods, losses, metrics, optimisers, schedules) or
/// data/plugin.h (transforms, orders, fields, sources), which declare the parts, and build the
/// plug-in with the CMake function precast_add_plugin(), which find_package(precast) provides.
/// precast_add_plugin() defines PRECAST_ABI: the version of precast and a digest of the headers
/// with which the plug-in is built.
///
/// C++ has no stable binary interface: a plug-in must have been compiled with the same headers,
/// libtorch and compiler as precast. It therefore contains a string that describes how it was
/// compiled. precast compares this string with its own before it opens the library, that is, before
/// any code of the plug-in runs.

#include <version>

#define PRECAST_PLUGIN_TEXT_(x) #x
#define PRECAST_PLUGIN_TEXT(x) PRECAST_PLUGIN_TEXT_(x)

#if defined(__clang__)
#define PRECAST_COMPILER "clang " PRECAST_PLUGIN_TEXT(__clang_major__)
#else
#define PRECAST_COMPILER "gcc " PRECAST_PLUGIN_TEXT(__GNUC__)
#endif
/// Containers with debug checks have a different memory layout.
#if defined(_GLIBCXX_DEBUG)
#define PRECAST_CXX_CHECKS " debug"
#else
#define PRECAST_CXX_CHECKS ""
#endif
#define PRECAST_CXX_LIBRARY                                                       \
  "libstdc++ " PRECAST_PLUGIN_TEXT(_GLIBCXX_RELEASE) " abi " PRECAST_PLUGIN_TEXT( \
      _GLIBCXX_USE_CXX11_ABI) PRECAST_CXX_CHECKS
#define PRECAST_CXX_STANDARD "standard " PRECAST_PLUGIN_TEXT(__cplusplus)
/// The properties that determine the binary layout of a class: release and ABI of the compiler,
/// release and ABI of the standard library, and the language version. Only the major version of GCC
/// or Clang is included, because the layout does not change between minor versions.
#define PRECAST_TOOLCHAIN                                                                 \
  PRECAST_COMPILER " abi " PRECAST_PLUGIN_TEXT(__GXX_ABI_VERSION) " " PRECAST_CXX_LIBRARY \
                                                                  " " PRECAST_CXX_STANDARD

/// The first line of the string that describes how a plug-in was compiled. Increase the interface
/// number when this header changes.
#define PRECAST_PLUGIN_MAGIC "precast plug-in interface "
#define PRECAST_PLUGIN_INTERFACE "1"

namespace precast {

/// The type of `precast_plugin`, the only symbol of a plug-in that precast reads. It has the layout
/// of a C struct, so that precast can read it regardless of the plug-in's compiler.
struct PluginDescriptor {
  /// PRECAST_PLUGIN_MAGIC and the interface number, then one `key value` per line: kind, precast,
  /// torch, compiler.
  char text[512];
  /// Fills the empty registries of the TrainParts or DataParts that `parts` points to.
  void (*add_parts)(void* parts);
};

}  // namespace precast

/// framework/api/plugin.h and data/plugin.h use this macro. The separate `extern` declaration is
/// needed because constants have internal linkage by default.
#define PRECAST_PLUGIN_DESCRIPTOR(kind, Parts, torch, function)                                   \
  extern "C" {                                                                                    \
  extern __attribute__((visibility("default"))) const ::precast::PluginDescriptor precast_plugin; \
  const ::precast::PluginDescriptor precast_plugin = {                                            \
      PRECAST_PLUGIN_MAGIC PRECAST_PLUGIN_INTERFACE                                               \
      "\nkind " kind "\nprecast " PRECAST_ABI "\ntorch " torch "\ncompiler " PRECAST_TOOLCHAIN    \
      "\n",                                                                                       \
      [](void* parts) { function(*static_cast<Parts*>(parts)); }};                                \
  }
