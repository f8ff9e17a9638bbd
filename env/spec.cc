#include "env/spec.h"

#include "graphs/error.h"
#include "graphs/registry.h"

namespace doppler {

std::size_t ArraySpec::n_elements() const {
  std::size_t n = 1;
  for (std::int64_t size : shape) n *= static_cast<std::size_t>(size);
  return n;
}

std::size_t ArraySpec::n_bytes() const {
  return n_elements() * static_cast<std::size_t>(size_of(dtype));
}

std::size_t ActionSpec::mask_size() const {
  std::size_t n = 0;
  for (std::int64_t size : sizes) n += static_cast<std::size_t>(size);
  return n;
}

std::size_t EnvSpec::index(const std::string& name) const {
  std::vector<std::string> names;
  for (std::size_t i = 0; i < observations.size(); ++i) {
    if (observations[i].name == name) return i;
    names.push_back(observations[i].name);
  }
  throw_unknown_name("observation", name, names);
}

}  // namespace doppler
