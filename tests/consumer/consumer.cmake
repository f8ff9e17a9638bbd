# What the checks of the consumer share.

# A command that must succeed; its output is in OUTPUT.
function(run)
  execute_process(COMMAND ${ARGN} OUTPUT_VARIABLE output ERROR_VARIABLE output
                  RESULT_VARIABLE status)
  if(NOT status EQUAL 0)
    list(JOIN ARGN " " command)
    message(FATAL_ERROR "failed (${status}): ${command}\n${output}")
  endif()
  set(OUTPUT "${output}" PARENT_SCOPE)
endfunction()

# A new folder outside the source tree.
function(make_work_folder variable)
  execute_process(COMMAND mktemp -d OUTPUT_VARIABLE folder OUTPUT_STRIP_TRAILING_WHITESPACE
                  COMMAND_ERROR_IS_FATAL ANY)
  set(${variable} ${folder} PARENT_SCOPE)
endfunction()

# Builds a copy of the consumer, which it puts in WORK, in BUILD and checks what it prints.
function(build_and_run work build)
  file(COPY ${CMAKE_CURRENT_FUNCTION_LIST_DIR}/CMakeLists.txt
            ${CMAKE_CURRENT_FUNCTION_LIST_DIR}/main.cc DESTINATION ${work}/consumer)
  run(${CMAKE_COMMAND} -S ${work}/consumer -B ${build} ${CONSUMER_OPTIONS} ${ARGN})
  run(${CMAKE_COMMAND} --build ${build} --target consumer --parallel 2)
  file(GLOB program ${build}/consumer)
  run(${program})
  # By hand: 2 s, 4 bytes at 1 byte/s, 3 s; on one device nothing is sent.
  if(NOT OUTPUT MATCHES "takes 9 s\n.*takes 5 s\n")
    message(FATAL_ERROR "the consumer prints\n${OUTPUT}")
  endif()
endfunction()

# No file below FOLDER whose name fits one of PATTERNS (list) may name one of the other folders.
function(check_free_of folder patterns)
  list(TRANSFORM patterns PREPEND ${folder}/)
  file(GLOB_RECURSE files ${patterns})
  if(NOT files)
    message(FATAL_ERROR "there is no ${patterns}")
  endif()
  foreach(other ${ARGN})
    string(REGEX REPLACE "([][+.*()^$?|\\])" "\\\\\\1" pattern "${other}")
    foreach(file ${files})
      file(STRINGS ${file} lines REGEX "${pattern}")
      if(lines)
        message(FATAL_ERROR "${file} names ${other}: ${lines}")
      endif()
    endforeach()
  endforeach()
endfunction()
