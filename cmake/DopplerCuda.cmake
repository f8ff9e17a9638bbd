# Whether the CUDA engine's module is built, and for which GPUs. Sets DOPPLER_BUILDS_CUDA; then
# nvcc is enabled and CUDA::cublas and DOPPLER_NCCL_LIBRARY, DOPPLER_NCCL_INCLUDE are there.
set(DOPPLER_CUDA_ARCHITECTURES "" CACHE STRING
    "GPUs to compile for: all, or a list as for CMAKE_CUDA_ARCHITECTURES. Empty: all with \
DOPPLER_CUDA=ON; 8.x and 9.0, and newer ones by PTX, with AUTO")

set(DOPPLER_BUILDS_CUDA OFF)
set(missing "")
if(NOT DOPPLER_CUDA STREQUAL "OFF")
  # The architectures are set on the module; this one is for CMake's own trials.
  if(NOT DEFINED CMAKE_CUDA_ARCHITECTURES)
    set(CMAKE_CUDA_ARCHITECTURES 80)
  endif()
  # nvcc may be off the path.
  find_program(DOPPLER_NVCC nvcc HINTS ENV CUDACXX ENV CUDA_PATH /usr/local/cuda PATH_SUFFIXES bin)
  mark_as_advanced(DOPPLER_NVCC)
  if(DOPPLER_NVCC AND NOT DEFINED CMAKE_CUDA_COMPILER)
    set(CMAKE_CUDA_COMPILER ${DOPPLER_NVCC})
  endif()
  include(CheckLanguage)
  check_language(CUDA)
  if(CMAKE_CUDA_COMPILER)
    if(DOPPLER_CCACHE AND NOT DEFINED CMAKE_CUDA_COMPILER_LAUNCHER)
      set(CMAKE_CUDA_COMPILER_LAUNCHER ${DOPPLER_CCACHE})
    endif()
    enable_language(CUDA)
    # CMake 3.25 does not know that nvcc 12 and 13 have C++20.
    foreach(option CMAKE_CUDA20_STANDARD_COMPILE_OPTION CMAKE_CUDA20_EXTENSION_COMPILE_OPTION)
      if(NOT DEFINED ${option})
        set(${option} -std=c++20)
      endif()
    endforeach()
    find_package(CUDAToolkit QUIET)
    if(CMAKE_CUDA_COMPILER_VERSION VERSION_LESS 12)
      string(APPEND missing " a CUDA toolkit from 12 on (this is ${CMAKE_CUDA_COMPILER_VERSION})")
    endif()
    if(NOT TARGET CUDA::cublas)
      string(APPEND missing " cuBLAS")
    endif()
    find_path(DOPPLER_NCCL_INCLUDE nccl.h HINTS ${CUDAToolkit_INCLUDE_DIRS} ENV NCCL_HOME
              PATH_SUFFIXES include)
    find_library(DOPPLER_NCCL_LIBRARY nccl HINTS ${CUDAToolkit_LIBRARY_DIR} ENV NCCL_HOME
                 PATH_SUFFIXES lib lib64)
    mark_as_advanced(DOPPLER_NCCL_INCLUDE DOPPLER_NCCL_LIBRARY)
    if(NOT DOPPLER_NCCL_INCLUDE OR NOT DOPPLER_NCCL_LIBRARY)
      string(APPEND missing " NCCL")
    endif()
  else()
    set(missing " a CUDA compiler")
  endif()
  if(NOT missing)
    set(DOPPLER_BUILDS_CUDA ON)
  elseif(NOT DOPPLER_CUDA STREQUAL "AUTO")
    message(FATAL_ERROR "DOPPLER_CUDA=${DOPPLER_CUDA} needs${missing}; see docs/cuda-engine.md")
  else()
    message(STATUS "The CUDA engine's module is not built; it needs${missing}")
  endif()
endif()

# Real code for each GPU, and PTX of the newest for those to come. Toolkit 13 has no Pascal and Volta;
# 12 has Blackwell from 12.8 on.
if(DOPPLER_BUILDS_CUDA)
  set(architectures ${DOPPLER_CUDA_ARCHITECTURES})
  if(NOT architectures AND DOPPLER_CUDA STREQUAL "AUTO")
    set(architectures 80-real 90)
  elseif(NOT architectures OR architectures STREQUAL "all")
    set(architectures 75-real 80-real 86-real 89-real)
    if(CMAKE_CUDA_COMPILER_VERSION VERSION_LESS 13)
      list(PREPEND architectures 60-real 70-real)
    endif()
    if(CMAKE_CUDA_COMPILER_VERSION VERSION_LESS 12.8)
      list(APPEND architectures 90)
    else()
      list(APPEND architectures 90-real 100-real 120)
    endif()
  endif()
  set(DOPPLER_CUDA_TARGETS ${architectures})
  message(STATUS "The CUDA engine's module is built for: ${architectures}")
endif()

# What both sides of the module's boundary must agree on: headers that change ask for a new
# configuration, and thus for a build of both.
file(GLOB boundary CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/graphs/*.h
     ${PROJECT_SOURCE_DIR}/executor/runtime/device_api.h
     ${PROJECT_SOURCE_DIR}/executor/cuda/cuda_devices.h)
set_property(DIRECTORY ${PROJECT_SOURCE_DIR} APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${boundary})
set(hashes "")
foreach(header IN LISTS boundary)
  file(SHA256 ${header} hash)
  string(APPEND hashes ${hash})
endforeach()
string(SHA256 hash "${hashes}")
string(SUBSTRING ${hash} 0 12 hash)
set(DOPPLER_BUILD_ID "${PROJECT_VERSION}-${hash}")
