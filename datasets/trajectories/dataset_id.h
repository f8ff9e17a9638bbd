// Names of data sets, by Minari's rules: "dopplergym/llama-layer_p100x4/critical-path-v0".
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace doppler {

// Throws UsageError for what is no id (namespace/)name-vN of letters, digits, '_' and '-'; also for
// a part named "data", which Minari takes for a data set's own folder.
void check_dataset_id(const std::string& id);

// A text as a part of an id: everything else becomes '_', but none at the end. "x" for nothing.
std::string dataset_name_of(std::string_view text);

// "dopplergym/TASK/AGENT-vVERSION".
std::string dataset_id_of(std::string_view task, std::string_view agent, std::int64_t version);

}  // namespace doppler
