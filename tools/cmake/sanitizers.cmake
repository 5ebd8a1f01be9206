# Sanitizers in everything, and the coverage of libFuzzer in the libraries that its programs link.
if(PRECAST_FUZZ AND NOT (CMAKE_CXX_COMPILER_ID STREQUAL Clang AND PRECAST_SANITIZE STREQUAL "address;undefined"))
  message(FATAL_ERROR "PRECAST_FUZZ needs clang and -DPRECAST_SANITIZE='address;undefined'")
endif()
# The wheel's libtorch crashes on load under AddressSanitizer, so sanitizers go with the torch-free build.
if(PRECAST_SANITIZE)
  if(PRECAST_TORCH)
    message(FATAL_ERROR "PRECAST_SANITIZE needs -DPRECAST_TORCH=OFF: libtorch does not load under sanitizers")
  endif()
  list(JOIN PRECAST_SANITIZE "," precast_sanitizers)
  add_compile_options(-fsanitize=${precast_sanitizers} -fno-sanitize-recover=all -fno-omit-frame-pointer -g1 -O1
    -D_GLIBCXX_ASSERTIONS)
  add_link_options(-fsanitize=${precast_sanitizers})
endif()
