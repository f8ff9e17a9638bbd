// Agents of shared libraries in the registry; agents/plugin.h is what these implement.
#pragma once

#include <string>
#include <vector>

namespace doppler {

// Loads the library, which stays loaded, registers its agents, and returns their names. Code of the
// library runs in this process: whoever cannot trust it calls this in a process of its own. Throws
// RunError for a file that cannot be loaded, is no plugin, or of another version, and UsageError
// for a name that is taken or no name.
std::vector<std::string> register_plugin(const std::string& path);

}  // namespace doppler
