# Writes the header that defines PRECAST_ABI: the version and a digest of all public headers. precast loads only
# plug-ins with its own PRECAST_ABI. This script runs once for precast and once for each plug-in, on the headers that
# each is compiled with.
# cmake -DROOT=<folder> -DHEADERS=<file> -DVERSION=<x.y.z> -DOUT=<header> -P write_abi.cmake
# HEADERS lists the headers: one path per line, relative to ROOT.
file(STRINGS ${HEADERS} headers)
set(digests "")
foreach(header IN LISTS headers)
  file(SHA256 ${ROOT}/${header} digest)
  string(APPEND digests "${header} ${digest}\n")
endforeach()
string(SHA256 digest "${digests}")
string(SUBSTRING ${digest} 0 12 digest)
file(WRITE ${OUT} "#pragma once

/// The version and a digest of the public headers. precast loads only plug-ins with the same ones.
#define PRECAST_ABI \"${VERSION} headers ${digest}\"
")
