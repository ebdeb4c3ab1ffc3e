# Hardening turns an error of memory into the end of the program: checked sizes of buffers (_FORTIFY_SOURCE) and
# indices of the standard library (_GLIBCXX_ASSERTIONS), guarded return addresses, addresses that differ from start to start (PIE), and tables
# of functions that are read-only before main() (RELRO). tests/package checks the built program. Sanitizers check sizes themselves.
option(PIPELINE_HARDENED "Compile and link with hardening" ON)

include(CheckCXXSourceCompiles)
include(CheckCXXCompilerFlag)
include(CheckLinkerFlag)
include(CheckPIESupported)
check_pie_supported(LANGUAGES CXX)

add_library(pipeline_hardening INTERFACE)
if(PIPELINE_HARDENED)
  # An older compiler takes 3 for 2, and an older libc warns of that.
  foreach(level 3 2)
    set(CMAKE_REQUIRED_FLAGS "-O2 -Werror -U_FORTIFY_SOURCE -D_FORTIFY_SOURCE=${level}")
    check_cxx_source_compiles("#include <cstdio>\nint main() { return 0; }" PIPELINE_FORTIFY_${level})
    unset(CMAKE_REQUIRED_FLAGS)
    if(PIPELINE_FORTIFY_${level})
      # It needs an optimizing compiler.
      target_compile_options(pipeline_hardening INTERFACE
                             "$<$<CONFIG:Release,RelWithDebInfo,MinSizeRel>:-U_FORTIFY_SOURCE;-D_FORTIFY_SOURCE=${level}>")
      break()
    endif()
  endforeach()
  check_cxx_compiler_flag(-fstack-protector-strong PIPELINE_STACK_PROTECTOR)
  if(PIPELINE_STACK_PROTECTOR)
    target_compile_options(pipeline_hardening INTERFACE -fstack-protector-strong)
  endif()
  target_compile_definitions(pipeline_hardening INTERFACE _GLIBCXX_ASSERTIONS)
  check_linker_flag(CXX -Wl,-z,relro,-z,now,-z,noexecstack PIPELINE_RELRO)
  if(PIPELINE_RELRO)
    target_link_options(pipeline_hardening INTERFACE -Wl,-z,relro,-z,now,-z,noexecstack)
  endif()
endif()
