// Finished episodes in a file of their own; see recording_folder.h for its form.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "datasets/trajectories/episode.h"

namespace doppler {

struct Part {
  std::uint64_t recording = 0;  // hash of what is recorded
  std::int64_t first = 0;       // number of the first episode
  std::vector<Episode> episodes;
};

// Whole or not at all, and on the disk. Throws RunError.
void write_part(const std::string& path, const Part& part);
// Throws RunError that names the path for what is damaged, foreign, or of a newer version.
Part read_part(const std::string& path);
// "000000000042.part".
std::string part_name(std::int64_t first);

}  // namespace doppler
