# Installs the project, moves the installed tree away from where it was put, and builds and runs the
# consumer with it. Nothing installed, and nothing that the consumer is built from, may lie in the
# source or build folder.
# Variables: SOURCE, BUILD, CONSUMER_OPTIONS (list).
include(${CMAKE_CURRENT_LIST_DIR}/consumer.cmake)
make_work_folder(work)

run(${CMAKE_COMMAND} --install ${BUILD} --prefix ${work}/installed)
file(RENAME ${work}/installed ${work}/moved)

check_free_of(${work}/moved "*.cmake;*.h;doppler-gym" ${SOURCE} ${BUILD} ${work}/installed)

build_and_run(${work} ${work}/build -DCMAKE_PREFIX_PATH=${work}/moved)
check_free_of(${work}/build "*.ninja;Makefile;*.make" ${SOURCE} ${BUILD})

run(${work}/moved/bin/doppler-gym --help)
file(REMOVE_RECURSE ${work})
