# CUDA decks need the toolkit's headers and nvcc to build, and nothing of it to start: the driver is loaded at run time.
# KBH_CUDA=OFF leaves them out; AUTO (the default) takes what is there.
set(KBH_CUDA AUTO CACHE STRING "Build what CUDA decks need: AUTO, ON or OFF")
set(cuda_hints $ENV{CUDA_HOME} /usr/local/cuda)
find_path(KBH_CUDA_INCLUDE cuda.h HINTS ${cuda_hints} PATH_SUFFIXES include)
find_program(KBH_NVCC nvcc HINTS ${cuda_hints} PATH_SUFFIXES bin)
if(KBH_CUDA STREQUAL "AUTO")
  if(KBH_CUDA_INCLUDE AND KBH_NVCC)
    set(KBH_WITH_CUDA ON)
  else()
    set(KBH_WITH_CUDA OFF)
    message(STATUS "No CUDA toolkit: kbh is built without CUDA decks")
  endif()
else()
  set(KBH_WITH_CUDA ${KBH_CUDA})
endif()
if(NOT KBH_WITH_CUDA)
  return()
endif()

# The grader's own device code: one fat binary a file in kbh-device/ beside the programs, opened at run time. nvcc compiles
# the kernels for each architecture; sm_80 as PTX too, for devices that are not listed.
set(KBH_DEVICE_ARCHS 90a CACHE STRING "Architectures of the grader's device code, beside sm_80 PTX (90a 100a 120a ...)")

# kbh_device_code(TARGET file.cu...): target TARGET makes kbh-device/NAME.fatbin of each.
function(kbh_device_code target)
  set(gencode -gencode arch=compute_80,code=compute_80)
  foreach(arch ${KBH_DEVICE_ARCHS})
    list(APPEND gencode -gencode arch=compute_${arch},code=sm_${arch})
  endforeach()
  set(outputs "")
  foreach(source ${ARGN})
    get_filename_component(name ${source} NAME_WE)
    set(output ${CMAKE_BINARY_DIR}/kbh-device/${name}.fatbin)
    add_custom_command(
      OUTPUT ${output}
      COMMAND ${CMAKE_COMMAND} -E make_directory ${CMAKE_BINARY_DIR}/kbh-device
      COMMAND ${KBH_NVCC} -fatbin -std=c++20 -O3 --fmad=false ${gencode} -I${CMAKE_SOURCE_DIR}/src
              -I${CMAKE_SOURCE_DIR}/include -MD -MF ${output}.d -MT ${output} -o ${output} ${source}
      DEPENDS ${source} DEPFILE ${output}.d VERBATIM)
    list(APPEND outputs ${output})
  endforeach()
  add_custom_target(${target} ALL DEPENDS ${outputs})
endfunction()

file(GLOB device_sources CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/src/device/cuda/*.cu)
kbh_device_code(kbh_device_code ${device_sources})
