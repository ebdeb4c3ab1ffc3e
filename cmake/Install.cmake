# Files of `cmake --install`, and the Debian packages that CPack makes from them: `pipe` (the command) and `pipe-dev` (headers, libraries, CMake package).
include(CMakePackageConfigHelpers)

# All rooms but that of the stager, which is a separate program.
get_property(PIPELINE_ROOMS GLOBAL PROPERTY PIPELINE_ROOMS)
list(REMOVE_ITEM PIPELINE_ROOMS stager)
list(TRANSFORM PIPELINE_ROOMS REPLACE "/" "_")
set(PIPELINE_CMAKE_DIR ${CMAKE_INSTALL_LIBDIR}/cmake/pipeline)

# The command, with the files that it reads.
install(TARGETS pipe RUNTIME COMPONENT pipe)
install(DIRECTORY ${PROJECT_SOURCE_DIR}/templates DESTINATION ${CMAKE_INSTALL_DATADIR}/pipeline COMPONENT pipe)
install(FILES LICENSE README.md CHANGELOG.md DESTINATION ${CMAKE_INSTALL_DATADIR}/doc/pipe COMPONENT pipe)
foreach(package pipe pipe-dev)  # Debian's policy wants it under each package's name
  install(FILES ${PROJECT_SOURCE_DIR}/cmake/copyright DESTINATION ${CMAKE_INSTALL_DATADIR}/doc/${package} COMPONENT ${package})
endforeach()

# Completion scripts, as the command itself writes them: that of another processor does it in QEMU.
string(JOIN "\" \"" run_pipe ${CMAKE_CROSSCOMPILING_EMULATOR} $<TARGET_FILE:pipe>)
foreach(pair bash=bash-completion/completions/pipe zsh=zsh/vendor-completions/_pipe fish=fish/vendor_completions.d/pipe.fish)
  string(REPLACE "=" ";" pair ${pair})
  list(POP_FRONT pair shell path)
  install(CODE "
    set(script \"\$ENV{DESTDIR}\${CMAKE_INSTALL_PREFIX}/${CMAKE_INSTALL_DATADIR}/${path}\")
    message(STATUS \"Installing: \${script}\")
    cmake_path(GET script PARENT_PATH folder)
    file(MAKE_DIRECTORY \"\${folder}\")
    execute_process(COMMAND \"${run_pipe}\" completion ${shell} OUTPUT_FILE \"\${script}\" COMMAND_ERROR_IS_FATAL ANY)
  " COMPONENT pipe)
endforeach()

# The manual page, likewise; compressed where it can be, as Debian's policy wants it. gzip's -n leaves the time out.
find_program(PIPELINE_GZIP gzip)
set(compress_page "")
if(PIPELINE_GZIP)
  set(compress_page "execute_process(COMMAND \"${PIPELINE_GZIP}\" -9nf \"\${page}\" COMMAND_ERROR_IS_FATAL ANY)")
endif()
install(CODE "
  set(page \"\$ENV{DESTDIR}\${CMAKE_INSTALL_PREFIX}/${CMAKE_INSTALL_MANDIR}/man1/pipe.1\")
  message(STATUS \"Installing: \${page}\")
  cmake_path(GET page PARENT_PATH folder)
  file(MAKE_DIRECTORY \"\${folder}\")
  execute_process(COMMAND \"${run_pipe}\" help --man OUTPUT_FILE \"\${page}\" COMMAND_ERROR_IS_FATAL ANY)
  ${compress_page}
" COMPONENT pipe)

# The libraries.
add_library(pipeline_headers INTERFACE)
target_include_directories(pipeline_headers INTERFACE $<BUILD_INTERFACE:${PROJECT_SOURCE_DIR}/include> $<INSTALL_INTERFACE:${CMAKE_INSTALL_INCLUDEDIR}>)
target_compile_features(pipeline_headers INTERFACE cxx_std_20)
target_link_libraries(pipeline_headers INTERFACE pipeline_core nlohmann_json::nlohmann_json)  # core holds what pl::Json is made of
set_target_properties(pipeline_headers PROPERTIES EXPORT_NAME headers)
add_library(pipeline_pipeline INTERFACE)
target_link_libraries(pipeline_pipeline INTERFACE pipeline_headers pipeline_cli)
set_target_properties(pipeline_pipeline PROPERTIES EXPORT_NAME pipeline)
foreach(room ${PIPELINE_ROOMS})
  set_target_properties(pipeline_${room} PROPERTIES EXPORT_NAME ${room})
  list(APPEND targets pipeline_${room})
endforeach()
foreach(name headers pipeline ${PIPELINE_ROOMS})
  add_library(pipeline::${name} ALIAS pipeline_${name})
endforeach()
add_custom_target(installed DEPENDS pipe ${targets})  # all that `cmake --install` wants
add_subdirectory(${CMAKE_CURRENT_LIST_DIR}/development)

if(NOT PROJECT_IS_TOP_LEVEL)
  return()
endif()

# dpkg-shlibdeps finds what `pipe` is linked with; what it loads on first use is named here: the package that owns the library found at configure time.
function(package_of library fallback result)
  get_filename_component(file ${library} REALPATH)
  execute_process(COMMAND dpkg-query --search ${file} OUTPUT_VARIABLE owner ERROR_QUIET RESULT_VARIABLE status)
  if(status EQUAL 0 AND owner MATCHES "^([a-z0-9.+-]+)[:,]")
    set(${result} ${CMAKE_MATCH_1} PARENT_SCOPE)
  else()
    set(${result} ${fallback} PARENT_SCOPE)
  endif()
endfunction()
package_of(${curl_LIBRARY} libcurl4 curl_package)
package_of(${git2_LIBRARY} libgit2-1.5 git2_package)

# The processor of the packages, which is not this machine's after a build by another one's compiler (toolchains/). dpkg-shlibdeps is told by a variable.
if(CMAKE_CROSSCOMPILING)
  set(architecture ${CMAKE_SYSTEM_PROCESSOR})
  string(REPLACE aarch64 arm64 architecture ${architecture})
  string(REPLACE x86_64 amd64 architecture ${architecture})
  set(CPACK_DEBIAN_PACKAGE_ARCHITECTURE ${architecture})
  set(CPACK_PROJECT_CONFIG_FILE ${PROJECT_BINARY_DIR}/CPackArchitecture.cmake)
  file(WRITE ${CPACK_PROJECT_CONFIG_FILE} "set(ENV{DEB_HOST_ARCH} ${architecture})\n")
endif()
set(CPACK_GENERATOR DEB)
set(CPACK_PACKAGE_NAME pipe)
set(CPACK_PACKAGE_CONTACT "The pipe maintainers")
set(CPACK_PACKAGE_DESCRIPTION_SUMMARY "${PROJECT_DESCRIPTION}")
set(CPACK_PACKAGING_INSTALL_PREFIX /usr)
set(CPACK_STRIP_FILES ON)
set(CPACK_RESOURCE_FILE_LICENSE ${PROJECT_SOURCE_DIR}/LICENSE)
set(CPACK_COMPONENTS_ALL pipe pipe-dev)
set(CPACK_DEB_COMPONENT_INSTALL ON)
set(CPACK_DEBIAN_FILE_NAME DEB-DEFAULT)
set(CPACK_DEBIAN_PIPE_PACKAGE_NAME pipe)
set(CPACK_DEBIAN_PIPE_PACKAGE_SECTION science)
set(CPACK_DEBIAN_PIPE_PACKAGE_SHLIBDEPS ON)
set(CPACK_DEBIAN_PIPE_PACKAGE_DEPENDS "${curl_package}, ${git2_package}, ca-certificates")
set(CPACK_DEBIAN_PIPE_PACKAGE_RECOMMENDS "python3-venv")
set(CPACK_DEBIAN_PIPE_PACKAGE_SUGGESTS "docker.io | docker-ce | podman")
set(CPACK_DEBIAN_PIPE-DEV_PACKAGE_NAME pipe-dev)
set(CPACK_DEBIAN_PIPE-DEV_PACKAGE_SECTION libdevel)
set(CPACK_DEBIAN_PIPE-DEV_PACKAGE_DEPENDS "pkg-config, nlohmann-json3-dev, libyaml-cpp-dev, libsqlite3-dev, libssl-dev, ${curl_package}, ${git2_package}")
set(CPACK_COMPONENT_PIPE_DESCRIPTION "The command that builds each step's image and runs the pipeline in containers.")
set(CPACK_COMPONENT_PIPE-DEV_DESCRIPTION "Headers, static libraries and the CMake package for programs that\ndefine pipelines in C++.")
include(CPack)
