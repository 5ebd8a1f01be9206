# The wheel's libtorch crashes under AddressSanitizer when it is loaded, so sanitizers need a torch-free build.
# PRECAST_FUZZ also compiles all code with libFuzzer's coverage counters; only the programs in tests/fuzz link libFuzzer
# itself.
if(PRECAST_FUZZ AND NOT (CMAKE_CXX_COMPILER_ID STREQUAL Clang AND PRECAST_SANITIZE STREQUAL "address;undefined"))
  message(FATAL_ERROR "PRECAST_FUZZ: expected -DCMAKE_CXX_COMPILER=clang++-19 and -DPRECAST_SANITIZE='address;undefined', got '${CMAKE_CXX_COMPILER}' and '${PRECAST_SANITIZE}'")
endif()
if(PRECAST_SANITIZE)
  if(PRECAST_TORCH)
    message(FATAL_ERROR "PRECAST_SANITIZE: expected -DPRECAST_TORCH=OFF, because libtorch cannot be loaded under sanitizers")
  endif()
  list(JOIN PRECAST_SANITIZE "," precast_sanitizers)
  add_compile_options(-fsanitize=${precast_sanitizers} -fno-sanitize-recover=all -fno-omit-frame-pointer -g1 -O1
    -D_GLIBCXX_ASSERTIONS)
  add_link_options(-fsanitize=${precast_sanitizers})
  if(PRECAST_FUZZ)
    # gcc, which compiles the few C sources, does not know this option.
    add_compile_options($<$<COMPILE_LANGUAGE:CXX>:-fsanitize=fuzzer-no-link>)
  endif()
  if(CMAKE_CXX_COMPILER_ID STREQUAL Clang)
    # g++ defines this macro itself, and so does clang from version 21 on.
    string(REGEX MATCH "address|thread" precast_sanitizer "${PRECAST_SANITIZE}")
    string(TOUPPER ${precast_sanitizer} precast_sanitizer)
    add_compile_definitions(__SANITIZE_${precast_sanitizer}__=1)
  endif()
endif()
