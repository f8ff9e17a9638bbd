# Builds and runs the consumer with the project's sources as a part of it.
# Variables: SOURCE, CONSUMER_OPTIONS (list).
include(${CMAKE_CURRENT_LIST_DIR}/consumer.cmake)
make_work_folder(work)
build_and_run(${work} -DDOPPLER_GYM_SOURCE=${SOURCE})
set(part ${work}/build/_deps/dopplergym-build)
if(NOT EXISTS ${part}/graphs OR EXISTS ${part}/tests)
  message(FATAL_ERROR "a part must build its rooms in ${part}, and not its tests")
endif()
file(REMOVE_RECURSE ${work})
