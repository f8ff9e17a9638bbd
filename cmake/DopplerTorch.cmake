# doppler_find_torch(): finds LibTorch and makes the target doppler_torch of its core libraries.
# DOPPLER_LEARNED: AUTO (where PyTorch is found), ON (an error without it), OFF. Sets
# DOPPLER_HAS_TORCH.
#
# PyTorch is looked for in CMAKE_PREFIX_PATH (an unpacked LibTorch), then in the packages of
# Python_EXECUTABLE or else of the active python3. Its own CMake package is not used: that of a
# CUDA build demands the very toolkit that it was built with, and nothing here compiles CUDA.
function(doppler_find_torch)
  set(DOPPLER_HAS_TORCH FALSE PARENT_SCOPE)
  if(DOPPLER_LEARNED STREQUAL "OFF" OR NOT DOPPLER_LEARNED OR DOPPLER_LEARNED_BUILT)
    return()
  endif()
  find_path(torch_include torch/script.h NO_CACHE PATH_SUFFIXES include
            HINTS ${CMAKE_PREFIX_PATH} NO_DEFAULT_PATH)
  if(torch_include)
    get_filename_component(torch_folder ${torch_include} DIRECTORY)
  else()
    set(python ${Python_EXECUTABLE})
    if(NOT python)
      find_program(python python3 NO_CACHE)
    endif()
    if(python)
      execute_process(
        COMMAND ${python} -c "import importlib.util as u; s = u.find_spec('torch'); print(s.submodule_search_locations[0] if s else '')"
        OUTPUT_VARIABLE torch_folder OUTPUT_STRIP_TRAILING_WHITESPACE ERROR_QUIET)
    endif()
  endif()
  foreach(library torch_cpu c10)
    find_library(torch_${library} ${library} NO_CACHE NO_DEFAULT_PATH PATHS "${torch_folder}/lib")
    if(NOT torch_${library})
      if(NOT DOPPLER_LEARNED STREQUAL "AUTO")
        message(FATAL_ERROR "DOPPLER_LEARNED is ${DOPPLER_LEARNED}, but PyTorch was not found. Install it "
                            "for the active Python (pip install torch), name a Python that has it by "
                            "-DPython_EXECUTABLE=..., or an unpacked LibTorch by -DCMAKE_PREFIX_PATH=...")
      endif()
      message(STATUS "PyTorch not found: the learned agents are left out")
      return()
    endif()
  endforeach()
  message(STATUS "PyTorch for the learned agents: ${torch_folder}")

  add_library(doppler_torch INTERFACE)
  # SYSTEM: its headers do not keep to our warnings.
  target_include_directories(doppler_torch SYSTEM INTERFACE
    ${torch_folder}/include ${torch_folder}/include/torch/csrc/api/include)
  target_link_libraries(doppler_torch INTERFACE ${torch_torch_cpu} ${torch_c10})
  set(DOPPLER_TORCH_FOLDER ${torch_folder}/lib PARENT_SCOPE)
  set(DOPPLER_HAS_TORCH TRUE PARENT_SCOPE)
endfunction()
