# How this project compiles when it is built for itself; a project that adds it as a part keeps its
# own ways.

if(NOT CMAKE_BUILD_TYPE AND NOT CMAKE_CONFIGURATION_TYPES)
  set(CMAKE_BUILD_TYPE Release CACHE STRING "Release, Debug or RelWithDebInfo" FORCE)
endif()

# A compiler cache, where there is one and no other launcher is asked for.
find_program(DOPPLER_CCACHE ccache DOC "Compiler cache; empty: none")
mark_as_advanced(DOPPLER_CCACHE)
if(DOPPLER_CCACHE AND NOT DEFINED CMAKE_CXX_COMPILER_LAUNCHER)
  set(CMAKE_CXX_COMPILER_LAUNCHER ${DOPPLER_CCACHE})
endif()
