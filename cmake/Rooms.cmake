# A room is one static library made of the sources of one folder below src/. USES names the rooms it may enter: only their headers are on its
# include path through the link, and tests/rooms checks the includes themselves.
# Only with the compiler that CI has: another one's new warnings are no reason to stop a user's build.
set(warnings_are_errors OFF)
if(PROJECT_IS_TOP_LEVEL AND CMAKE_CXX_COMPILER_ID STREQUAL "GNU" AND CMAKE_CXX_COMPILER_VERSION MATCHES "^12\\.")
  set(warnings_are_errors ON)
endif()
option(PIPELINE_WERROR "Treat warnings as errors" ${warnings_are_errors})
# Several sources are compiled as one: their headers are read once, not once a source.
option(PIPELINE_UNITY "Compile the sources of a room in batches" ON)
# Of these, the largest rooms are two of equal weight, so that the last one of a build is not compiled alone. Smaller ones suit who edits a room with
# this preset: one source then compiles its batch only.
set(PIPELINE_UNITY_BATCH 42 CACHE STRING "Sources a batch")
# What a release's rooms are compiled with that wait for others: an engine, a cluster, a disk, a user. It takes a quarter less time than -O2, and
# bench/ shows no difference. Rooms that compute have COMPUTES; none of these can be on the event loop, because g++ 12 crashes where it reads a
# precompiled header at another level than it was made at.
set(PIPELINE_WAITING_FLAGS -O1)

add_library(pipeline_options INTERFACE)
target_compile_options(pipeline_options INTERFACE -Wall -Wextra -Wpedantic -Wshadow -Wnon-virtual-dtor -Woverloaded-virtual -Wno-missing-field-initializers
                       $<$<BOOL:${PIPELINE_WERROR}>:-Werror>
                       # g++ collects its garbage less often: a tenth of the time, for a tenth more memory.
                       "$<$<CXX_COMPILER_ID:GNU>:SHELL:--param ggc-min-expand=300 --param ggc-min-heapsize=1000000>"
                       # g++ 12 takes the value of an empty std::optional for one that is read (gcc bug 80635), and where it inlines only one
                       # of the two, Asio's allocation and release of a coroutine's frame for a mismatched pair.
                       # In a batch of sources it takes a coroutine's own lambdas for another file's (-Wsubobject-linkage).
                       $<$<CXX_COMPILER_ID:GNU>:-Wno-subobject-linkage>
                       # Clang takes another file's names in it for shadowed ones.
                       $<$<AND:$<CXX_COMPILER_ID:Clang>,$<BOOL:${PIPELINE_UNITY}>>:-Wno-shadow>
                       $<$<CXX_COMPILER_ID:GNU>:-Wno-maybe-uninitialized> $<$<CXX_COMPILER_ID:GNU>:-Wno-mismatched-new-delete>)
target_include_directories(pipeline_options INTERFACE ${PROJECT_SOURCE_DIR}/src ${PROJECT_SOURCE_DIR}/include)

function(pipeline_room name)
  cmake_parse_arguments(ROOM "COMPUTES" "" "USES;DEPENDS" ${ARGN})
  file(GLOB_RECURSE sources CONFIGURE_DEPENDS ${CMAKE_CURRENT_SOURCE_DIR}/${name}/*.cpp)
  # Programs that the room embeds are targets of their own.
  list(FILTER sources EXCLUDE REGEX "/main\\.cpp$")
  if(NOT sources)
    file(TOUCH ${CMAKE_BINARY_DIR}/empty.cpp)
    set(sources ${CMAKE_BINARY_DIR}/empty.cpp)
  endif()
  add_library(pipeline_${name} STATIC ${sources})
  set_target_properties(pipeline_${name} PROPERTIES LINKER_LANGUAGE CXX UNITY_BUILD ${PIPELINE_UNITY}
                        UNITY_BUILD_BATCH_SIZE ${PIPELINE_UNITY_BATCH})
  target_link_libraries(pipeline_${name} PUBLIC $<BUILD_INTERFACE:pipeline_options> PRIVATE $<BUILD_INTERFACE:pipeline_hardening>)
  if(NOT ROOM_COMPUTES)
    target_compile_options(pipeline_${name} PRIVATE $<$<CONFIG:Release>:${PIPELINE_WAITING_FLAGS}>)
  endif()
  foreach(room ${ROOM_USES})
    target_link_libraries(pipeline_${name} PUBLIC pipeline_${room})
  endforeach()
  foreach(dependency ${ROOM_DEPENDS})
    target_link_libraries(pipeline_${name} PUBLIC $<BUILD_INTERFACE:pipeline_dep_${dependency}> $<INSTALL_INTERFACE:pipeline::dep_${dependency}>)
  endforeach()
  if("asio" IN_LIST ROOM_DEPENDS)
    if(ROOM_COMPUTES)
      message(FATAL_ERROR "Room ${name} cannot have COMPUTES and the precompiled header of rooms on the event loop")
    endif()
    # Asio's headers are precompiled once, for all rooms on the event loop.
    if(TARGET pipeline_async AND NOT name STREQUAL "async")
      target_precompile_headers(pipeline_${name} REUSE_FROM pipeline_async)
    else()
      target_precompile_headers(pipeline_${name} PRIVATE ${PROJECT_SOURCE_DIR}/src/async/task.hpp)
    endif()
  endif()
endfunction()
