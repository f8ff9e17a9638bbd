# Builds and runs the consumer with the project's sources as a part of it.
# Variables: SOURCE, BUILD, CONSUMER_OPTIONS (list).
include(${CMAKE_CURRENT_LIST_DIR}/consumer.cmake)
make_work_folder(work)
# Beside the build folder: from there the sources have the same relative paths, by which the compiler
# cache knows what was compiled already.
execute_process(COMMAND mktemp -d ${BUILD}/../as_part.XXXXXX OUTPUT_VARIABLE build
                OUTPUT_STRIP_TRAILING_WHITESPACE COMMAND_ERROR_IS_FATAL ANY)
file(REAL_PATH ${build} build)
build_and_run(${work} ${build} -DDOPPLER_GYM_SOURCE=${SOURCE})
set(part ${build}/_deps/dopplergym-build)
if(NOT EXISTS ${part}/graphs OR EXISTS ${part}/tests)
  message(FATAL_ERROR "a part must build its rooms in ${part}, and not its tests")
endif()
file(REMOVE_RECURSE ${work} ${build})
