// Cluster files: own versioned JSON, schema in docs/cluster-format.md.
#pragma once

#include <string>
#include <string_view>

#include "graphs/cluster.h"
#include "graphs/cost_model.h"

namespace doppler {

// Throw ParseError "file:line:column: what; how to mend it" (or the path of the JSON element where
// a line cannot be told); unknown fields are refused. read(write(c)) == c.
Cluster read_cluster(const std::string& path);
Cluster parse_cluster(std::string_view content, const std::string& source);
std::string to_json(const Cluster& cluster);

// Measured profiles (schema in docs/profile-format.md).
Profile read_profile(const std::string& path);
Profile parse_profile(std::string_view content, const std::string& source);
std::string to_json(const Profile& profile);

}  // namespace doppler
