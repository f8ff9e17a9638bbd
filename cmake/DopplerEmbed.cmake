# doppler_embed(TARGET SOURCE NAME FILES...): compiles text files into a target. Its source SOURCE, and
# no other, includes "embedded/NAME.h", which declares
#   namespace doppler::embedded { std::span<const File> NAME(); }
# with File{std::string_view name, content}: the files' names without folder, in the given order.
# Files are read when the target is built; a changed file rebuilds it. What other sources are compiled
# with does not name the build folder, so that the compiler cache serves every build of them.
#
# As a script (cmake -DNAME= -DOUTPUT= -DFILES= -P) this file writes OUTPUT.cc from FILES.
if(CMAKE_SCRIPT_MODE_FILE)
  set(entries "")
  foreach(file IN LISTS FILES)
    file(READ ${file} content)
    string(FIND "${content}" ")_file_\"" terminator)
    if(NOT terminator EQUAL -1)
      message(FATAL_ERROR "${file} cannot be embedded: it holds the end mark of a raw string")
    endif()
    get_filename_component(name ${file} NAME)
    string(APPEND entries "    {\"${name}\", R\"_file_(${content})_file_\"},\n")
  endforeach()
  file(WRITE ${OUTPUT} "#include \"embedded/${NAME}.h\"\n
namespace doppler::embedded {
namespace {
constexpr File kFiles[] = {
${entries}};
}  // namespace
std::span<const File> ${NAME}() { return kFiles; }
}  // namespace doppler::embedded\n")
  return()
endif()

set(DOPPLER_EMBED_SCRIPT ${CMAKE_CURRENT_LIST_FILE})

function(doppler_embed target source name)
  set(folder ${CMAKE_CURRENT_BINARY_DIR}/embedded)
  file(CONFIGURE OUTPUT ${folder}/file.h CONTENT "#pragma once
#include <string_view>
namespace doppler::embedded {
struct File {
  std::string_view name;
  std::string_view content;
};
}  // namespace doppler::embedded\n" @ONLY)
  file(CONFIGURE OUTPUT ${folder}/${name}.h CONTENT "#pragma once
#include <span>
#include \"embedded/file.h\"
namespace doppler::embedded {
std::span<const File> ${name}();
}  // namespace doppler::embedded\n" @ONLY)
  add_custom_command(
    OUTPUT ${folder}/${name}.cc
    COMMAND ${CMAKE_COMMAND} -DNAME=${name} -DOUTPUT=${folder}/${name}.cc "-DFILES=${ARGN}"
            -P ${DOPPLER_EMBED_SCRIPT}
    DEPENDS ${ARGN} ${DOPPLER_EMBED_SCRIPT}
    COMMENT "Embedding ${name}"
    VERBATIM)
  target_sources(${target} PRIVATE ${folder}/${name}.cc)
  set_property(SOURCE ${source} ${folder}/${name}.cc APPEND PROPERTY
    INCLUDE_DIRECTORIES ${CMAKE_CURRENT_BINARY_DIR})
  # Whole files are longer than the literals that a compiler must accept; ours accept any length.
  set_source_files_properties(${folder}/${name}.cc PROPERTIES
    COMPILE_OPTIONS -Wno-overlength-strings SKIP_PRECOMPILE_HEADERS ON)
endfunction()
