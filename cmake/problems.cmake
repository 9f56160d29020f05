# Finds the problems: one folder below src/problems each. Writes problem_list.cpp, which calls their make functions and
# holds their texts. KBH_PROBLEMS builds only some of them: quick work on one.
set(KBH_PROBLEMS "" CACHE STRING "Ids of the problems to build, separated by semicolons; empty for all")

file(GLOB folders RELATIVE ${CMAKE_SOURCE_DIR}/src/problems CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/src/problems/*)
set(KBH_BUILT_PROBLEMS "")
foreach(id ${folders})
  if(EXISTS ${CMAKE_SOURCE_DIR}/src/problems/${id}/problem.toml AND (NOT KBH_PROBLEMS OR id IN_LIST KBH_PROBLEMS))
    list(APPEND KBH_BUILT_PROBLEMS ${id})
  endif()
endforeach()
foreach(id ${KBH_PROBLEMS})
  if(NOT id IN_LIST KBH_BUILT_PROBLEMS)
    message(FATAL_ERROR "KBH_PROBLEMS: src/problems/${id}/problem.toml does not exist")
  endif()
endforeach()

# kbh_problem_list(target): adds the generated file and the embedded texts.
function(kbh_problem_list target)
  set(declarations "")
  set(calls "")
  set(folders_code "")
  foreach(id ${KBH_BUILT_PROBLEMS})
    string(APPEND declarations "Problem make_${id}();\n")
    string(APPEND calls "  problems.push_back(make_${id}());\n")
    set(texts "")
    foreach(file problem.toml prompt.md reference.py reference.hpp)
      if(EXISTS ${CMAKE_SOURCE_DIR}/src/problems/${id}/${file})
        kbh_embed(${target} src/problems/${id}/${file})
        string(MAKE_C_IDENTIFIER problems/${id}/${file} name)
        string(APPEND declarations "namespace embedded { extern const std::string_view ${name}; }\n")
        string(APPEND texts "embedded::${name}, ")
      else()
        string(APPEND texts "{}, ")
      endif()
    endforeach()
    string(APPEND folders_code "  if (id == \"${id}\") return {${texts}};\n")
  endforeach()
  list(JOIN folders "\", \"" ids)
  file(CONFIGURE OUTPUT ${CMAKE_BINARY_DIR}/problem_list.cpp CONTENT "#include \"problem/problem_list.hpp\"

#include \"base/error.hpp\"

namespace kbh {
@declarations@
std::vector<Problem> make_problems() {
  std::vector<Problem> problems;
@calls@  return problems;
}

ProblemFolder problem_folder(std::string_view id) {
@folders_code@  expect(false, \"the problem is built in\");
  return {};
}

const std::vector<std::string>& problem_ids() {
  static const std::vector<std::string> ids = {\"@ids@\"};
  return ids;
}
}  // namespace kbh
")
  target_sources(${target} PRIVATE ${CMAKE_BINARY_DIR}/problem_list.cpp)
endfunction()
