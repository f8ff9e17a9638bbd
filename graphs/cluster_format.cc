#include "graphs/cluster_format.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "graphs/error.h"
#include "graphs/file.h"
#include "graphs/parse_error.h"
#include "graphs/strict_json.h"
#include "graphs/topology.h"

namespace doppler {
namespace {

using Json = nlohmann::ordered_json;

constexpr std::string_view kFormat = "doppler-cluster";
constexpr std::int64_t kVersion = 1;

std::map<DType, double> read_rates(const JsonElement& reader) {
  std::map<DType, double> rates;
  for (const auto& [name, value] : reader.fields()) {
    try {
      rates[parse_dtype(name)] = value.rate();
    } catch (const UsageError& error) {
      value.fail(error.what());
    }
  }
  return rates;
}

Device read_device(const JsonElement& reader) {
  Device device;
  device.kind = reader.field("kind").text();
  device.flops = read_rates(reader.field("flops"));
  device.bandwidth = reader.field("bandwidth").rate();
  if (const auto value = reader.find("launch_overhead")) device.launch_overhead = value->quantity();
  // Memory of 0 is legal, so it is not a rate.
  if (const auto value = reader.find("memory")) {
    device.memory = value->is_text() ? value->rate() : value->quantity();
  }
  if (const auto value = reader.find("streams")) {
    device.streams = static_cast<std::int32_t>(value->integer(1, kMaxStreams));
  }
  if (const auto value = reader.find("peak_flops")) device.peak_flops = read_rates(*value);
  if (const auto value = reader.find("peak_bandwidth")) device.peak_bandwidth = value->rate();
  return device;
}

void read_devices(const JsonElement& reader, ClusterParts& parts) {
  for (const JsonElement& group : reader.elements()) {
    group.allow_fields({"count", "kind", "flops", "bandwidth", "launch_overhead", "memory",
                        "streams", "peak_flops", "peak_bandwidth"});
    std::int64_t count = 1;
    const auto room = static_cast<std::int64_t>(kMaxDevices - parts.devices.size());
    if (const auto value = group.find("count")) {
      count = value->integer(1, static_cast<std::int64_t>(kMaxDevices));
    }
    if (count > room) group.fail("more than " + std::to_string(kMaxDevices) + " devices in all");
    parts.devices.insert(parts.devices.end(), static_cast<std::size_t>(count), read_device(group));
  }
  if (parts.devices.empty()) reader.fail("no devices; give at least one");
}

DeviceId read_device_id(const JsonElement& reader, const ClusterParts& parts) {
  return DeviceId{reader.integer(0, static_cast<std::int64_t>(parts.devices.size()) - 1)};
}

void read_channels(const JsonElement& reader, ClusterParts& parts) {
  for (const JsonElement& channel : reader.elements()) {
    channel.allow_fields({"name", "capacity"});
    parts.channels.push_back({channel.field("name").text(), channel.field("capacity").rate()});
  }
}

void read_links(const JsonElement& reader, ClusterParts& parts) {
  const auto n_channels = static_cast<std::int64_t>(parts.channels.size());
  for (const JsonElement& link : reader.elements()) {
    link.allow_fields({"from", "to", "latency", "bandwidth", "channel", "both_ways"});
    const DeviceId from = read_device_id(link.field("from"), parts);
    const DeviceId to = read_device_id(link.field("to"), parts);
    const double latency = link.field("latency").quantity();
    const double bandwidth = link.field("bandwidth").rate();
    const auto both_ways = link.find("both_ways");
    if (const auto channel = link.find("channel")) {
      if (both_ways) both_ways->fail("not with a channel; list a link for each direction");
      if (n_channels == 0) channel->fail("there are no channels; list some or leave this out");
      parts.links.push_back(
          {from, to, latency, bandwidth, ChannelId{channel->integer(0, n_channels - 1)}});
    } else {
      add_own_link(parts, from, to, latency, bandwidth);
      if (both_ways && both_ways->boolean()) add_own_link(parts, to, from, latency, bandwidth);
    }
  }
}

void read_topology(const JsonElement& reader, ClusterParts& parts) {
  reader.allow_fields({"kind", "rows", "latency", "bandwidth"});
  const double latency = reader.field("latency").quantity();
  const double bandwidth = reader.field("bandwidth").rate();
  const auto n_devices = static_cast<std::int64_t>(parts.devices.size());
  const std::string& kind = reader.field("kind").text();
  const auto rows = reader.find("rows");
  std::vector<DevicePair> pairs;
  if (kind == "ring") {
    if (rows) rows->fail("a ring has no rows; leave it out");
    pairs = ring_pairs(n_devices);
  } else if (kind == "mesh") {
    const std::int64_t n_rows = rows ? rows->integer(1, n_devices) : mesh_rows(n_devices);
    if (n_devices % n_rows != 0) {
      rows->fail(std::to_string(n_rows) + " rows do not divide " + std::to_string(n_devices) +
                 " devices");
    }
    pairs = mesh_pairs(n_devices, n_rows);
  } else {
    reader.field("kind").fail("unknown topology " + doppler::quoted(kind) + "; known: mesh, ring");
  }
  for (const auto& [a, b] : pairs) {
    add_own_link(parts, a, b, latency, bandwidth);
    add_own_link(parts, b, a, latency, bandwidth);
  }
}

DefaultLink read_default_link(const JsonElement& reader) {
  reader.allow_fields({"latency", "bandwidth", "channels", "capacity"});
  DefaultLink link;
  link.latency = reader.field("latency").quantity();
  link.bandwidth = reader.field("bandwidth").rate();
  const JsonElement channels = reader.field("channels");
  if (channels.text() == "own") {
    link.channels = DefaultLink::Channels::own;
  } else if (channels.text() == "egress") {
    link.channels = DefaultLink::Channels::egress;
  } else {
    channels.fail("unknown channels " + doppler::quoted(channels.text()) + "; known: egress, own");
  }
  if (const auto capacity = reader.find("capacity")) link.capacity = capacity->rate();
  return link;
}

Json rates_json(const std::map<DType, double>& rates) {
  Json json = Json::object();
  for (const auto& [dtype, rate] : rates) json[std::string(to_string(dtype))] = rate_json(rate);
  return json;
}

Json device_json(const Device& device, std::size_t count) {
  Json json;
  if (count > 1) json["count"] = count;
  json["kind"] = device.kind;
  json["flops"] = rates_json(device.flops);
  json["bandwidth"] = rate_json(device.bandwidth);
  json["launch_overhead"] = device.launch_overhead;
  json["memory"] = rate_json(device.memory);
  json["streams"] = device.streams;
  if (!device.peak_flops.empty()) json["peak_flops"] = rates_json(device.peak_flops);
  if (device.peak_bandwidth != kUnlimited) json["peak_bandwidth"] = device.peak_bandwidth;
  return json;
}

}  // namespace

Cluster parse_cluster(std::string_view content, const std::string& source) {
  const nlohmann::json document = parse_strict_json(content, source);
  const JsonElement reader(document, source);
  reader.expect_format(kFormat, kVersion);
  reader.allow_fields({"format", "version", "name", "enforce_memory", "devices", "channels",
                       "links", "topology", "default_link", "sources"});
  ClusterParts parts;
  parts.name = reader.field("name").text();
  if (const auto value = reader.find("enforce_memory")) parts.enforce_memory = value->boolean();
  read_devices(reader.field("devices"), parts);
  if (const auto value = reader.find("channels")) read_channels(*value, parts);
  if (const auto value = reader.find("links")) read_links(*value, parts);
  if (const auto value = reader.find("topology")) read_topology(*value, parts);
  if (const auto value = reader.find("default_link")) {
    parts.default_link = read_default_link(*value);
  }
  if (const auto value = reader.find("sources")) {
    for (const JsonElement& entry : value->elements()) {
      entry.allow_fields({"figure", "source"});
      parts.sources.push_back({entry.field("figure").text(), entry.field("source").text()});
    }
  }
  try {
    return Cluster(std::move(parts));
  } catch (const InvalidError& error) {
    throw ParseError(source + ": " + error.what());
  }
}

Cluster read_cluster(const std::string& path) { return parse_cluster(read_file(path), path); }

std::string to_json(const Cluster& cluster) {
  const ClusterParts& parts = cluster.parts();
  Json json;
  json["format"] = kFormat;
  json["version"] = kVersion;
  json["name"] = parts.name;
  json["enforce_memory"] = parts.enforce_memory;
  json["devices"] = Json::array();
  for (std::size_t first = 0; first < parts.devices.size();) {
    std::size_t end = first + 1;
    while (end < parts.devices.size() && parts.devices[end] == parts.devices[first]) ++end;
    json["devices"].push_back(device_json(parts.devices[first], end - first));
    first = end;
  }
  if (!parts.channels.empty()) {
    Json& channels = json["channels"] = Json::array();
    for (const Channel& channel : parts.channels) {
      channels.push_back({{"name", channel.name}, {"capacity", rate_json(channel.capacity)}});
    }
  }
  if (!parts.links.empty()) {
    Json& links = json["links"] = Json::array();
    for (const Link& link : parts.links) {
      links.push_back({{"from", link.from.value},
                       {"to", link.to.value},
                       {"latency", link.latency},
                       {"bandwidth", rate_json(link.bandwidth)},
                       {"channel", link.channel.value}});
    }
  }
  if (parts.default_link) {
    const DefaultLink& link = *parts.default_link;
    Json& entry = json["default_link"];
    entry["latency"] = link.latency;
    entry["bandwidth"] = rate_json(link.bandwidth);
    entry["channels"] = link.channels == DefaultLink::Channels::own ? "own" : "egress";
    if (link.capacity != kUnlimited) entry["capacity"] = link.capacity;
  }
  if (!parts.sources.empty()) {
    Json& sources = json["sources"] = Json::array();
    for (const Source& source : parts.sources) {
      sources.push_back({{"figure", source.figure}, {"source", source.source}});
    }
  }
  return write_json(json, "cluster '" + parts.name + "'");
}

}  // namespace doppler
