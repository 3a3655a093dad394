# Warnings for our own code; third-party headers are SYSTEM includes.
add_library(nd7_warnings INTERFACE)
target_compile_options(nd7_warnings INTERFACE
  -Wall -Wextra -Wpedantic -Wshadow -Wconversion -Wsign-conversion -Wnon-virtual-dtor
  -Woverloaded-virtual -Wformat=2 -Werror)
if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
  target_compile_options(nd7_warnings INTERFACE -Wduplicated-cond -Wlogical-op
    $<$<COMPILE_LANGUAGE:CXX>:-Wold-style-cast>)
endif()
if(CMAKE_CXX_COMPILER_ID MATCHES "Clang")
  # libstdc++ 12's own stable_sort uses what it deprecates.
  target_compile_options(nd7_warnings INTERFACE -Wno-deprecated-declarations)
endif()
