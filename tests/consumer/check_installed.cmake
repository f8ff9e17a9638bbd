# Installs the project, moves the installed tree away from where it was put, and builds and runs the
# consumer with it. Nothing installed, and nothing that the consumer is built from, may lie in the
# source or build folder.
# Variables: SOURCE, BUILD, CONSUMER_OPTIONS (list).
include(${CMAKE_CURRENT_LIST_DIR}/consumer.cmake)
make_work_folder(work)

run(${CMAKE_COMMAND} --install ${BUILD} --prefix ${work}/installed)
file(RENAME ${work}/installed ${work}/moved)

file(GLOB_RECURSE files ${work}/moved/*.cmake ${work}/moved/*.h ${work}/moved/bin/*)
foreach(file ${files})
  foreach(folder ${SOURCE} ${BUILD} ${work}/installed)
    file(STRINGS ${file} lines REGEX "${folder}")
    if(lines)
      message(FATAL_ERROR "${file} has a path of ${folder}: ${lines}")
    endif()
  endforeach()
endforeach()

build_and_run(${work} -DCMAKE_PREFIX_PATH=${work}/moved)
file(GLOB_RECURSE files ${work}/build/*.ninja ${work}/build/*.make ${work}/build/*.d)
foreach(file ${files})
  file(STRINGS ${file} lines REGEX "${SOURCE}|${BUILD}")
  if(lines)
    message(FATAL_ERROR "the consumer's ${file} has a path of the project: ${lines}")
  endif()
endforeach()

run(${work}/moved/bin/doppler-gym --help)
file(REMOVE_RECURSE ${work})
