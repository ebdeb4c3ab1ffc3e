# The libraries, all from the distribution's packages. Libraries of every command are linked (Libraries.cmake). libcurl and libgit2 bring
# some fifty shared objects with them and are loaded on first use (core/lazy_library.hpp), so only their headers and sonames are needed here.
include(Libraries)
# From 1.86 on, Boost.Process is a library to link; before, it has only headers.
find_package(Boost 1.81 REQUIRED CONFIG OPTIONAL_COMPONENTS process)
find_package(nlohmann_json REQUIRED)

function(pipeline_lazy_library name header library)
  find_path(${name}_INCLUDE ${header} REQUIRED)
  find_library(${name}_LIBRARY ${library} REQUIRED)
  execute_process(COMMAND ${CMAKE_OBJDUMP} -p ${${name}_LIBRARY} OUTPUT_VARIABLE dump COMMAND_ERROR_IS_FATAL ANY)
  string(REGEX MATCH "SONAME +([^\n ]+)" _ "${dump}")
  add_library(pipeline_dep_${name} INTERFACE)
  target_include_directories(pipeline_dep_${name} SYSTEM INTERFACE ${${name}_INCLUDE})
  string(TOUPPER ${name} upper)
  target_compile_definitions(pipeline_dep_${name} INTERFACE PIPELINE_${upper}_SONAME="${CMAKE_MATCH_1}")
endfunction()

foreach(pair yaml=yaml-cpp sqlite=sqlite3 ssl=libssl crypto=libcrypto)
  string(REPLACE "=" ";" pair ${pair})
  list(POP_FRONT pair name module)
  add_library(pipeline_dep_${name} INTERFACE)
  pipeline_link(pipeline_dep_${name} ${module})
endforeach()
pipeline_lazy_library(curl curl/curl.h curl)
pipeline_lazy_library(git2 git2.h git2)

add_library(pipeline_dep_json INTERFACE)
target_link_libraries(pipeline_dep_json INTERFACE nlohmann_json::nlohmann_json)

add_library(pipeline_dep_asio INTERFACE)
target_include_directories(pipeline_dep_asio SYSTEM INTERFACE ${Boost_INCLUDE_DIRS})
target_compile_definitions(pipeline_dep_asio INTERFACE BOOST_ASIO_NO_DEPRECATED BOOST_ASIO_DISABLE_BOOST_REGEX=1 BOOST_PROCESS_USE_STD_FS=1)
target_link_libraries(pipeline_dep_asio INTERFACE Threads::Threads $<TARGET_NAME_IF_EXISTS:Boost::process>)

find_path(CLI11_INCLUDE CLI/CLI.hpp REQUIRED)
find_path(MUSTACHE_INCLUDE kainjow/mustache.hpp REQUIRED)
find_path(SPDLOG_INCLUDE spdlog/spdlog.h REQUIRED)
add_library(pipeline_dep_spdlog INTERFACE)
target_include_directories(pipeline_dep_spdlog SYSTEM INTERFACE ${SPDLOG_INCLUDE})
target_compile_definitions(pipeline_dep_spdlog INTERFACE SPDLOG_FMT_EXTERNAL SPDLOG_HEADER_ONLY FMT_HEADER_ONLY)
