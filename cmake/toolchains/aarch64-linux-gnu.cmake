# Builds for arm64 on another processor, with Debian's cross compiler and its libraries of arm64 (dpkg --add-architecture arm64):
# cmake --preset release -DCMAKE_TOOLCHAIN_FILE=cmake/toolchains/aarch64-linux-gnu.cmake. Programs that the build starts, tests among them, run in QEMU.
set(CMAKE_SYSTEM_NAME Linux)
set(CMAKE_SYSTEM_PROCESSOR aarch64)
set(CMAKE_C_COMPILER aarch64-linux-gnu-gcc)
set(CMAKE_CXX_COMPILER aarch64-linux-gnu-g++)
set(CMAKE_LIBRARY_ARCHITECTURE aarch64-linux-gnu)
set(CMAKE_FIND_ROOT_PATH_MODE_PROGRAM NEVER)
set(ENV{PKG_CONFIG_LIBDIR} /usr/lib/aarch64-linux-gnu/pkgconfig:/usr/share/pkgconfig)
find_program(PIPELINE_QEMU NAMES qemu-aarch64 qemu-aarch64-static)
if(PIPELINE_QEMU)
  set(CMAKE_CROSSCOMPILING_EMULATOR ${PIPELINE_QEMU})
endif()
