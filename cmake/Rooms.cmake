# A room is one static library made of the sources of one folder below src/. USES names the rooms it may enter: only their headers are on its
# include path through the link, and tests/rooms checks the includes themselves. A folder of a room can be a nested room, `orchestrators/local`, which
# may use the outer one, but not the other way round; its target is pipeline_orchestrators_local.
# Only with the compiler that CI has: another one's new warnings are no reason to stop a user's build.
set(warnings_are_errors OFF)
if(PROJECT_IS_TOP_LEVEL AND CMAKE_CXX_COMPILER_ID STREQUAL "GNU" AND CMAKE_CXX_COMPILER_VERSION MATCHES "^12\\.")
  set(warnings_are_errors ON)
endif()
option(PIPELINE_WERROR "Treat warnings as errors" ${warnings_are_errors})
# Several sources are compiled as one: their headers are read once, not once a source.
option(PIPELINE_UNITY "Compile the sources of a room in batches" ON)
# The largest rooms are two batches of equal size, so that the last one of a build is not compiled alone. Smaller ones suit who edits a room with
# this preset: one source then compiles its batch only.
set(PIPELINE_UNITY_BATCH 42 CACHE STRING "Sources a batch")
# Flags of a release's rooms that mostly wait: for an engine, a cluster, a disk, a user. Compiling takes a quarter less time than -O2, and
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

# Removes what lies in nested rooms from the list of a room's sources. Paths are compared, because a clone's path is no pattern: ~/c++/pipe, "pipe (1)".
function(pipeline_remove_nested room list)
  get_property(rooms GLOBAL PROPERTY PIPELINE_ROOMS)
  foreach(other ${rooms})
    if(other MATCHES "^${room}/")
      set(nested "${CMAKE_CURRENT_SOURCE_DIR}/${other}")
      foreach(source IN LISTS ${list})
        cmake_path(IS_PREFIX nested "${source}" is_nested)
        if(is_nested)
          list(REMOVE_ITEM ${list} "${source}")
        endif()
      endforeach()
    endif()
  endforeach()
  set(${list} ${${list}} PARENT_SCOPE)
endfunction()

function(pipeline_room room)
  cmake_parse_arguments(ROOM "COMPUTES" "" "USES;DEPENDS" ${ARGN})
  set_property(GLOBAL APPEND PROPERTY PIPELINE_ROOMS ${room})
  string(REPLACE "/" "_" name ${room})
  file(GLOB_RECURSE sources CONFIGURE_DEPENDS ${CMAKE_CURRENT_SOURCE_DIR}/${room}/*.cpp)
  # Programs that the room embeds are targets of their own, and an orchestrator's entry belongs to the catalog.
  list(FILTER sources EXCLUDE REGEX "/(main|entry)\\.cpp$")
  pipeline_remove_nested(${room} sources)
  cmake_path(GET room PARENT_PATH outer)
  if(outer AND TARGET pipeline_${outer})
    get_target_property(outer_sources pipeline_${outer} SOURCES)
    pipeline_remove_nested(${outer} outer_sources)
    set_property(TARGET pipeline_${outer} PROPERTY SOURCES ${outer_sources})
  endif()
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
  foreach(used ${ROOM_USES})
    string(REPLACE "/" "_" used ${used})
    target_link_libraries(pipeline_${name} PUBLIC pipeline_${used})
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

# An orchestrator is a room orchestrators/NAME. Its entry.cpp defines `orchestrators::NAME_entry()`, plain data that rooms below orchestrators read, and is
# compiled into the catalog; the rest defines `orchestrators::make_NAME_orchestrator()`. An object that registers itself would not be linked from a static
# library, so pipeline_registry() writes the two lists, in the order of these calls.
function(pipeline_orchestrator name)
  pipeline_room(orchestrators/${name} ${ARGN})
  target_sources(pipeline_orchestrators_catalog PRIVATE ${CMAKE_CURRENT_SOURCE_DIR}/orchestrators/${name}/entry.cpp)
  set_property(GLOBAL APPEND PROPERTY PIPELINE_ORCHESTRATORS ${name})
endfunction()

# The rooms orchestrators/catalog and orchestrators/registry read what this writes. It is called behind the last orchestrator.
function(pipeline_registry)
  get_property(names GLOBAL PROPERTY PIPELINE_ORCHESTRATORS)
  foreach(name ${names})
    string(APPEND entries "Entry ${name}_entry();\n")
    string(APPEND entry_calls "${name}_entry(), ")
    string(APPEND factories "Factory make_${name}_orchestrator;\n")
    string(APPEND factory_rows "{\"${name}\", make_${name}_orchestrator}, ")
    target_link_libraries(pipeline_orchestrators_registry PUBLIC pipeline_orchestrators_${name})
  endforeach()
  foreach(room catalog registry)
    configure_file(${PROJECT_SOURCE_DIR}/cmake/${room}.cpp.in ${CMAKE_BINARY_DIR}/orchestrators/${room}.cpp @ONLY)
    target_sources(pipeline_orchestrators_${room} PRIVATE ${CMAKE_BINARY_DIR}/orchestrators/${room}.cpp)
  endforeach()
endfunction()

# A kind of remote store is a folder of the room blobs, which defines `blobs::NAME::kind()`. The order is that in which addresses are tried.
function(pipeline_blob_stores)
  foreach(name ${ARGN})
    string(APPEND declarations "namespace ${name} {\nconst Kind& kind();\n}\n")
    string(APPEND kinds "&${name}::kind(), ")
  endforeach()
  configure_file(${PROJECT_SOURCE_DIR}/cmake/kinds.cpp.in ${CMAKE_BINARY_DIR}/blobs/kinds.cpp @ONLY)
  target_sources(pipeline_blobs PRIVATE ${CMAKE_BINARY_DIR}/blobs/kinds.cpp)
endfunction()
