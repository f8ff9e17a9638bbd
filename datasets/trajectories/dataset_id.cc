#include "datasets/trajectories/dataset_id.h"

#include <algorithm>

#include "graphs/error.h"

namespace doppler {
namespace {

bool is_word(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' ||
         c == '-';
}

bool is_digit(char c) { return c >= '0' && c <= '9'; }

bool has_version(std::string_view name) {
  const std::size_t digits = static_cast<std::size_t>(
      std::find_if_not(name.rbegin(), name.rend(), is_digit) - name.rbegin());
  if (digits == 0 || digits > 9 || name.size() < digits + 3) return false;
  return name.substr(name.size() - digits - 2, 2) == "-v";
}

}  // namespace

void check_dataset_id(const std::string& id) {
  const auto fail = [&](const std::string& what) {
    throw UsageError("data set id '" + id + "' " + what +
                     "; an id is NAMESPACE/NAME-vVERSION of letters, digits, '_' and '-', such as "
                     "dopplergym/llama-layer_p100x4/critical-path-v0");
  };
  std::size_t begin = 0;
  while (true) {
    const std::size_t slash = std::min(id.find('/', begin), id.size());
    const std::string_view part = std::string_view(id).substr(begin, slash - begin);
    if (part.empty()) fail("has an empty part");
    if (!std::all_of(part.begin(), part.end(), is_word)) fail("has other characters");
    if (part == "data") fail("has a part named data");
    if (slash == id.size()) {
      if (!has_version(part)) fail("has no version");
      // Minari wants two characters of a namespace.
      if (begin == 2) fail("has a namespace of one character");
      return;
    }
    begin = slash + 1;
  }
}

std::string dataset_name_of(std::string_view text) {
  constexpr std::size_t kMostBytes = 100;
  std::string name;
  for (char c : text.substr(0, kMostBytes)) {
    if (is_word(c)) {
      name += c;
    } else if (!name.empty() && name.back() != '_') {
      name += '_';
    }
  }
  while (!name.empty() && name.back() == '_') name.pop_back();
  return name.empty() ? "x" : name;
}

std::string dataset_id_of(std::string_view task, std::string_view agent, std::int64_t version) {
  return "dopplergym/" + dataset_name_of(task) + "/" + dataset_name_of(agent) + "-v" +
         std::to_string(version);
}

}  // namespace doppler
