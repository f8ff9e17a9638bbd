// The report as one page: the template's parts and the report put together.
#include <nlohmann/json.hpp>
#include <stdexcept>

#include "embedded/page.h"
#include "leaderboard/report.h"

namespace doppler {
namespace {

std::string_view part(std::string_view name) {
  for (const embedded::File& file : embedded::page()) {
    if (file.name == name) return file.content;
  }
  throw std::logic_error("page.html: unknown part '" + std::string(name) + "'");
}

// JSON within a script element: no '<' that could end it or begin a comment. U+2028 and U+2029 are
// legal in JSON and in a script element that is data.
std::string json_for_script(const nlohmann::ordered_json& json) {
  const std::string text =
      json.dump(-1, ' ', false, nlohmann::ordered_json::error_handler_t::replace);
  std::string result;
  result.reserve(text.size());
  for (const char c : text) {
    if (c == '<') {
      result += "\\u003c";
    } else if (c == '>') {
      result += "\\u003e";
    } else if (c == '&') {
      result += "\\u0026";
    } else {
      result += c;
    }
  }
  return result;
}

}  // namespace

std::string report_page(const nlohmann::ordered_json& report) {
  const std::string_view page = part("page.html");
  std::string result;
  std::size_t from = 0;
  for (std::size_t begin = 0; (begin = page.find("{{", from)) != std::string_view::npos;) {
    const std::size_t end = page.find("}}", begin);
    if (end == std::string_view::npos) throw std::logic_error("page.html: '{{' without '}}'");
    result += page.substr(from, begin - from);
    const std::string_view name = page.substr(begin + 2, end - begin - 2);
    result += name == "report" ? json_for_script(report) : std::string(part(name));
    from = end + 2;
  }
  result += page.substr(from);
  return result;
}

}  // namespace doppler
