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
target_include_directories(kbh_flags SYSTEM INTERFACE ${KBH_CUDA_INCLUDE})
target_compile_definitions(kbh_flags INTERFACE KBH_WITH_CUDA=1)

# The grader's own device code: one fat binary beside the programs, opened at run time. nvcc compiles the kernels of every
# file for each architecture; sm_80 as PTX too, for devices that are not listed.
file(GLOB device_sources CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/src/device/cuda/*.cu)
set(KBH_DEVICE_ARCHS 90a CACHE STRING "Architectures of the grader's device code, beside sm_80 PTX (90a 100a 120a ...)")
set(gencode -gencode arch=compute_80,code=compute_80)
foreach(arch ${KBH_DEVICE_ARCHS})
  list(APPEND gencode -gencode arch=compute_${arch},code=sm_${arch})
endforeach()
set(device_code "")
foreach(source ${device_sources})
  get_filename_component(name ${source} NAME_WE)
  set(output ${CMAKE_BINARY_DIR}/kbh-device/${name}.fatbin)
  add_custom_command(
    OUTPUT ${output}
    COMMAND ${CMAKE_COMMAND} -E make_directory ${CMAKE_BINARY_DIR}/kbh-device
    COMMAND ${KBH_NVCC} -fatbin -std=c++20 -O3 --fmad=false ${gencode} -I${CMAKE_SOURCE_DIR}/src
            -I${CMAKE_SOURCE_DIR}/include -o ${output} ${source}
    DEPENDS ${source} VERBATIM)
  list(APPEND device_code ${output})
endforeach()
add_custom_target(kbh_device_code ALL DEPENDS ${device_code})
