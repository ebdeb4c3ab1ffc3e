# templates/ becomes one generated source, so that `pipe` needs no files beside it.
function(pipeline_embed_templates target)
  file(GLOB_RECURSE templates CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/templates/*)
  set(output ${CMAKE_CURRENT_BINARY_DIR}/${target}_templates.cpp)
  add_custom_command(
    OUTPUT ${output}
    COMMAND ${CMAKE_COMMAND} -DROOT=${PROJECT_SOURCE_DIR}/templates "-DFILES=${templates}" -DOUTPUT=${output} -P ${PROJECT_SOURCE_DIR}/cmake/EmbedTemplates.cmake
    DEPENDS ${templates} ${PROJECT_SOURCE_DIR}/cmake/EmbedTemplates.cmake
    COMMENT "Embedding templates/" VERBATIM)
  target_sources(${target} PRIVATE ${output})
endfunction()
