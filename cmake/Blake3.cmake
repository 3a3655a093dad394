# Debian ships BLAKE3's official C and assembly sources only inside librust-blake3-dev.
find_path(ND7_BLAKE3_DIR blake3_dispatch.c
  PATHS /usr/share/cargo/registry/blake3-1.3.1/c NO_DEFAULT_PATH)
if(NOT ND7_BLAKE3_DIR)
  file(GLOB candidates /usr/share/cargo/registry/blake3-*/c/blake3_dispatch.c)
  list(POP_FRONT candidates first)
  if(NOT first)
    message(FATAL_ERROR "BLAKE3 sources not found: install librust-blake3-dev")
  endif()
  get_filename_component(ND7_BLAKE3_DIR ${first} DIRECTORY)
endif()
add_library(blake3 STATIC
  ${ND7_BLAKE3_DIR}/blake3.c ${ND7_BLAKE3_DIR}/blake3_dispatch.c
  ${ND7_BLAKE3_DIR}/blake3_portable.c)
if(CMAKE_SYSTEM_PROCESSOR MATCHES "x86_64|AMD64")
  target_sources(blake3 PRIVATE
    ${ND7_BLAKE3_DIR}/blake3_sse2_x86-64_unix.S ${ND7_BLAKE3_DIR}/blake3_sse41_x86-64_unix.S
    ${ND7_BLAKE3_DIR}/blake3_avx2_x86-64_unix.S ${ND7_BLAKE3_DIR}/blake3_avx512_x86-64_unix.S)
elseif(CMAKE_SYSTEM_PROCESSOR MATCHES "aarch64")
  target_sources(blake3 PRIVATE ${ND7_BLAKE3_DIR}/blake3_neon.c)
endif()
target_include_directories(blake3 SYSTEM PUBLIC ${ND7_BLAKE3_DIR})
target_compile_options(blake3 PRIVATE -O3 -fvisibility=hidden -fcf-protection=full)
