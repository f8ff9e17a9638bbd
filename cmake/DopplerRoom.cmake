# One static library for each room of the house, with the warnings and sanitizers that all rooms share.

add_library(doppler_settings INTERFACE)
target_compile_features(doppler_settings INTERFACE cxx_std_20)
target_compile_options(doppler_settings INTERFACE
  -Wall -Wextra -Wpedantic -Wshadow -Wconversion -Wno-sign-conversion
  -Wnon-virtual-dtor -Woverloaded-virtual $<$<BOOL:${DOPPLER_WARNINGS_AS_ERRORS}>:-Werror>)
# g++ 12 reports these falsely for inlined strings and vectors (GCC bugs 105329, 105562).
target_compile_options(doppler_settings INTERFACE
  $<$<CXX_COMPILER_ID:GNU>:-Wno-restrict> $<$<CXX_COMPILER_ID:GNU>:-Wno-maybe-uninitialized>)
# Equality of instants is exact: no fused or reordered floating point anywhere.
target_compile_options(doppler_settings INTERFACE -ffp-contract=off)
if(DOPPLER_SANITIZE)
  target_compile_options(doppler_settings INTERFACE
    -fsanitize=${DOPPLER_SANITIZE} -fno-omit-frame-pointer -fno-sanitize-recover=all)
  target_link_options(doppler_settings INTERFACE -fsanitize=${DOPPLER_SANITIZE})
endif()

# doppler_room(NAME LIBRARIES...): library doppler_NAME, alias doppler::NAME, of every source below
# this folder, but for the folders in `modules`: those are loaded on demand and built by themselves.
function(doppler_room name)
  file(GLOB_RECURSE sources CONFIGURE_DEPENDS ${CMAKE_CURRENT_SOURCE_DIR}/*.cc)
  foreach(module IN LISTS modules)
    list(FILTER sources EXCLUDE REGEX "^${CMAKE_CURRENT_SOURCE_DIR}/${module}/")
  endforeach()
  add_library(doppler_${name} STATIC ${sources})
  add_library(doppler::${name} ALIAS doppler_${name})
  set_target_properties(doppler_${name} PROPERTIES EXPORT_NAME ${name})
  target_include_directories(doppler_${name} PUBLIC
    $<BUILD_INTERFACE:${PROJECT_SOURCE_DIR}>
    $<INSTALL_INTERFACE:${CMAKE_INSTALL_INCLUDEDIR}/doppler>)
  target_compile_features(doppler_${name} PUBLIC cxx_std_20)
  target_link_libraries(doppler_${name} PUBLIC ${ARGN} PRIVATE $<BUILD_INTERFACE:doppler_settings>)
  set_property(GLOBAL APPEND PROPERTY DOPPLER_ROOMS doppler_${name})
endfunction()
