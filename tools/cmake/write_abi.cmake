# Writes the header that defines PRECAST_ABI, the version and a digest of all public headers: what a plug-in must have
# been compiled against. Run for precast and again for each plug-in, over the headers that it finds.
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

/// What a plug-in's binary depends on: the version and a digest of the public headers.
#define PRECAST_ABI \"${VERSION} headers ${digest}\"
")
