// Measured profiles as JSON; declared in cluster_format.h.
#include <cstdint>
#include <limits>

#include "graphs/cluster_format.h"
#include "graphs/file.h"
#include "graphs/strict_json.h"

namespace doppler {
namespace {

using Json = nlohmann::ordered_json;

constexpr std::string_view kFormat = "doppler-profile";
constexpr std::int64_t kVersion = 1;

}  // namespace

Profile parse_profile(std::string_view content, const std::string& source) {
  const nlohmann::json document = parse_strict_json(content, source);
  const JsonElement reader(document, source);
  reader.expect_format(kFormat, kVersion);
  reader.allow_fields({"format", "version", "compute", "links"});
  Profile profile;
  for (const auto& [kind, times] : reader.field("compute").fields()) {
    auto& seconds = profile.compute[kind];
    for (const auto& [signature, time] : times.fields()) seconds[signature] = time.quantity();
  }
  if (const auto links = reader.find("links")) {
    for (const JsonElement& link : links->elements()) {
      link.allow_fields({"from", "to", "latency", "bandwidth"});
      constexpr auto most = static_cast<std::int64_t>(kMaxDevices) - 1;
      const DeviceId from{link.field("from").integer(0, most)};
      const DeviceId to{link.field("to").integer(0, most)};
      if (from == to) link.fail("joins a device to itself; leave it out");
      const Profile::LinkTime time{link.field("latency").quantity(),
                                   link.field("bandwidth").rate()};
      if (!profile.links.emplace(std::pair(from, to), time).second) {
        link.fail("this pair is given twice; keep one of them");
      }
    }
  }
  return profile;
}

Profile read_profile(const std::string& path) { return parse_profile(read_file(path), path); }

std::string to_json(const Profile& profile) {
  (void)CostModel::measured(profile);  // refuses what a reader would refuse
  Json json;
  json["format"] = kFormat;
  json["version"] = kVersion;
  json["compute"] = Json::object();
  // Whole maps: field by field would look each one up among all before it.
  for (const auto& [kind, times] : profile.compute) json["compute"][kind] = times;
  json["links"] = Json::array();
  for (const auto& [pair, time] : profile.links) {
    json["links"].push_back({{"from", pair.first.value},
                             {"to", pair.second.value},
                             {"latency", time.latency},
                             {"bandwidth", rate_json(time.bandwidth)}});
  }
  return write_json(json, "profile");
}

}  // namespace doppler
