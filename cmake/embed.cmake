# kbh_embed(target file...): each text file becomes `extern const std::string_view` kbh::embedded::NAME, where NAME is the
# path below src/ with every character outside [A-Za-z0-9] replaced by _.
function(kbh_embed target)
  foreach(file ${ARGN})
    file(RELATIVE_PATH name ${CMAKE_SOURCE_DIR}/src ${CMAKE_SOURCE_DIR}/${file})
    string(MAKE_C_IDENTIFIER ${name} name)
    set(output ${CMAKE_BINARY_DIR}/embedded/${name}.cpp)
    add_custom_command(
      OUTPUT ${output}
      COMMAND ${CMAKE_COMMAND} -DINPUT=${CMAKE_SOURCE_DIR}/${file} -DOUTPUT=${output} -DNAME=${name}
              -P ${CMAKE_SOURCE_DIR}/cmake/embed_file.cmake
      DEPENDS ${CMAKE_SOURCE_DIR}/${file} ${CMAKE_SOURCE_DIR}/cmake/embed_file.cmake
      VERBATIM)
    target_sources(${target} PRIVATE ${output})
  endforeach()
endfunction()
