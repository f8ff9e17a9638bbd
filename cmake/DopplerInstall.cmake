# `cmake --install` gives the headers by room, the libraries, the command and a package that
# find_package(DopplerGym) finds.
include(CMakePackageConfigHelpers)

get_property(rooms GLOBAL PROPERTY DOPPLER_ROOMS)
install(TARGETS ${rooms} EXPORT DopplerGymTargets ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR})
install(TARGETS doppler-gym RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR})
install(DIRECTORY graphs executor env datasets agents leaderboard
        DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}/doppler FILES_MATCHING PATTERN "*.h"
        PATTERN "learned" EXCLUDE)
if(TARGET doppler_learned)
  install(TARGETS doppler_learned LIBRARY DESTINATION lib/doppler)
endif()
install(EXPORT DopplerGymTargets NAMESPACE doppler::
        DESTINATION ${CMAKE_INSTALL_LIBDIR}/cmake/DopplerGym)
configure_package_config_file(${CMAKE_CURRENT_LIST_DIR}/DopplerGymConfig.cmake.in
  ${CMAKE_CURRENT_BINARY_DIR}/DopplerGymConfig.cmake
  INSTALL_DESTINATION ${CMAKE_INSTALL_LIBDIR}/cmake/DopplerGym)
write_basic_package_version_file(${CMAKE_CURRENT_BINARY_DIR}/DopplerGymConfigVersion.cmake
  COMPATIBILITY SameMinorVersion)
install(FILES ${CMAKE_CURRENT_BINARY_DIR}/DopplerGymConfig.cmake
              ${CMAKE_CURRENT_BINARY_DIR}/DopplerGymConfigVersion.cmake
        DESTINATION ${CMAKE_INSTALL_LIBDIR}/cmake/DopplerGym)
