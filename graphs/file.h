// Files, whole or not at all.
#pragma once

#include <string>
#include <string_view>

namespace doppler {

// The content of a regular file. Throws RunError that names the path for a missing file, a
// directory, no permission, or a file beyond `max_bytes`.
std::string read_file(const std::string& path, std::size_t max_bytes = std::size_t{4} << 30);

// The rest of standard input, with the same errors. The limit is lower, for the size is not known
// beforehand and the buffer has to grow.
std::string read_standard_input(std::size_t max_bytes = std::size_t{2} << 30);

// Writes under a temporary name in the same folder, syncs, renames over `path`: after a crash or
// Ctrl-C there is the old file or the new one. A symbolic link is followed, also to a file that is
// not there yet. Throws RunError that names the path.
void write_file(const std::string& path, std::string_view content);

// A text as part of a file's name: its first 100 bytes, where everything but letters, digits and
// "._-+=,@()" is an underscore. Different texts may come to one name.
std::string file_name_of(std::string_view text);

}  // namespace doppler
