// Cluster and CostModel.
#include "graphs/cluster.h"

#include <pybind11/operators.h>
#include <pybind11/stl.h>

#include "graphs/cluster_format.h"
#include "graphs/cost_model.h"
#include "graphs/error.h"
#include "graphs/file.h"
#include "python/bindings/convert.h"
#include "python/bindings/rooms.h"

namespace doppler::python {
namespace {

py::dict by_dtype(const std::map<DType, double>& rates) {
  py::dict result;
  for (const auto& [dtype, rate] : rates) result[to_python(to_string(dtype))] = rate;
  return result;
}

py::str cluster_to_json(const Cluster& cluster) { return to_python(to_json(cluster)); }

Cluster cluster_from_json(const py::object& text) {
  return parse_cluster(text_of(text, "text"), "text");
}

DeviceId device_at(const Cluster& cluster, const py::object& number, const std::string& what) {
  return DeviceId(integer_of(number, what, 0, static_cast<std::int64_t>(cluster.n_devices()) - 1));
}

Route route_between(const Cluster& cluster, const py::object& from, const py::object& to) {
  const DeviceId source = device_at(cluster, from, "source");
  const DeviceId target = device_at(cluster, to, "target");
  if (source == target) {
    throw UsageError("source and target are both device " + std::to_string(source.value) +
                     "; nothing is transferred within a device");
  }
  return cluster.route(source, target);
}

void bind_device(py::module_& module) {
  py::class_<Device> bound(module, "Device", "One processor of a cluster; an immutable value.");
  bound.def_property_readonly(
      "kind", [](const Device& device) { return to_python(device.kind); }, "\"p100\", \"uniform\"");
  bound.def_property_readonly(
      "flops", [](const Device& device) { return by_dtype(device.flops); },
      "Effective FLOP/s by dtype: what real kernels reach.");
  bound.def_readonly("bandwidth", &Device::bandwidth, "Effective memory bytes/s; inf: no limit.");
  bound.def_readonly("launch_overhead", &Device::launch_overhead, "Seconds before every node.");
  bound.def_readonly("memory", &Device::memory, "Bytes; inf: no limit.");
  bound.def_readonly("streams", &Device::streams, "Compute slots.");
  bound.def_property_readonly(
      "peak_flops", [](const Device& device) { return by_dtype(device.peak_flops); },
      "The vendor's FLOP/s by dtype; empty: unknown.");
  bound.def_readonly("peak_bandwidth", &Device::peak_bandwidth,
                     "The vendor's bytes/s; inf: unknown.");
  bound.def(py::self == py::self);
  bound.attr("__hash__") = py::none();
  bound.def("__repr__", [](const Device& device) {
    return py::str("<device {}: {} FLOP/s, {} bytes/s, {} bytes, {} streams>")
        .format(to_python(device.kind), by_dtype(device.flops), device.bandwidth, device.memory,
                device.streams);
  });

  py::class_<Route> route(module, "Route", "What a transfer between two devices meets.");
  route.def_readonly("latency", &Route::latency, "Seconds, summed over the links of the path.");
  route.def_readonly("bandwidth", &Route::bandwidth, "Bytes/s, the smallest on the path.");
  route.def_property_readonly(
      "channel", [](const Route& r) { return r.channel.value; },
      "Number of the channel that a transfer occupies.");
  route.def_readonly("n_hops", &Route::n_hops, "Links of the path.");
  route.def(py::self == py::self);
  route.attr("__hash__") = py::none();
  route.def("__repr__", [](const Route& r) {
    return py::str("<route: latency {} s, bandwidth {} bytes/s, channel {}, {} hops>")
        .format(r.latency, r.bandwidth, r.channel.value, r.n_hops);
  });
}

void bind_cluster(py::module_& module) {
  py::class_<Cluster> bound(module, "Cluster", R"(Devices and the links between them; an immutable
value.

Own clusters are JSON (docs/cluster-format.md): read() and from_json().)");
  const auto sized = [](Cluster (*make)(std::int64_t)) {
    return [make](const py::object& n) { return make(integer_of(n, "n")); };
  };
  bound.def_static("uniform", sized(&Cluster::uniform), py::arg("n"),
                   R"(n devices of rate 1, links of bandwidth 1 without latency, an own channel for
each ordered pair. n is 1 to 4096.)");
  bound.def_static("ring", sized(&Cluster::ring), py::arg("n"),
                   "The devices of uniform(), linked to both neighbours on a ring.");
  bound.def_static("mesh", sized(&Cluster::mesh), py::arg("n"),
                   "The devices of uniform() on a two-dimensional grid.");
  bound.def_static("from_json", &cluster_from_json, py::arg("text"),
                   "The cluster of a JSON text. Raises ParseError, with line and column.");
  bound.def_static(
      "read",
      [](const py::object& path) {
        const std::string file = path_of(path);
        const py::gil_scoped_release unlocked;
        return read_cluster(file);
      },
      py::arg("path"),
      "Reads a cluster file. Raises ParseError, and RunError (an OSError) for a file that cannot "
      "be read.");
  bound.def("to_json", &cluster_to_json, "from_json() of it is equal.");
  bound.def(
      "write",
      [](const Cluster& cluster, const py::object& path) {
        const std::string file = path_of(path);
        const py::gil_scoped_release unlocked;
        write_file(file, to_json(cluster));
      },
      py::arg("path"), "Writes a cluster file, whole or not at all. Raises RunError (an OSError).");
  bound.def_property_readonly("name",
                              [](const Cluster& cluster) { return to_python(cluster.name()); });
  bound.def_property_readonly("n_devices", &Cluster::n_devices);
  bound.def_property_readonly("n_channels", &Cluster::n_channels,
                              "What transfers contend for: channels.");
  bound.def_property_readonly("total_slots", &Cluster::total_slots, "Sum of the devices' streams.");
  bound.def_property_readonly(
      "devices", [](const Cluster& cluster) { return cluster.parts().devices; },
      "The devices, a new list of values.");
  bound.def_property_readonly(
      "enforce_memory", [](const Cluster& cluster) { return cluster.parts().enforce_memory; },
      "Whether tasks on this cluster enforce its memory unless told otherwise.");
  bound.def("route", &route_between, py::arg("source"), py::arg("target"),
            "The Route of transfers between two different devices. Raises UsageError.");
  def_copy(bound);
  bound.def(py::self == py::self);
  bound.def("__hash__", &Cluster::hash);
  bound.def("__repr__",
            [](const Cluster& cluster) { return py::str("<{}>").format(printed(cluster)); });
  bound.def(
      py::pickle([](const Cluster& cluster) { return py::make_tuple(cluster_to_json(cluster)); },
                 [](const py::tuple& state) {
                   if (state.size() != 1) {
                     throw UsageError("the state of a Cluster is one JSON text");
                   }
                   return cluster_from_json(state[0]);
                 }));
}

void bind_cost_model(py::module_& module) {
  py::class_<CostModel> bound(module, "CostModel", R"(Where the seconds of nodes and transfers come
from; an immutable value.

analytical(): launch overhead + max(FLOPs / rate, bytes / bandwidth) of the device.
measured(path): times of a profile; a node without a measurement is analytical.
raw(): the graph's own numbers.
of(graph): raw() if the graph carries raw costs, else analytical(). What tasks use by default.)");
  bound.def_static("analytical", &CostModel::analytical);
  bound.def_static("raw", &CostModel::raw);
  bound.def_static("of", &CostModel::of, py::arg("graph"));
  bound.def_static(
      "measured",
      [](const py::object& path) {
        const std::string file = path_of(path);
        const py::gil_scoped_release unlocked;
        return CostModel::measured(read_profile(file));
      },
      py::arg("path"),
      "Of a profile (docs/profile-format.md). Raises ParseError, or RunError (an OSError).");
  bound.def_property_readonly(
      "kind",
      [](const CostModel& model) {
        switch (model.kind()) {
          case CostModel::Kind::raw:
            return "raw";
          case CostModel::Kind::profile:
            return "measured";
          default:
            return "analytical";
        }
      },
      "\"analytical\", \"measured\" or \"raw\".");
  bound.def(
      "seconds",
      [](const CostModel& model, const Graph& graph, const Cluster& cluster) {
        const CostTable costs(graph, cluster, model);
        const auto n = static_cast<py::ssize_t>(graph.n_nodes());
        const auto d = static_cast<py::ssize_t>(cluster.n_devices());
        py::array_t<double> result({n, d});
        double* out = result.mutable_data();
        for (py::ssize_t v = 0; v < n; ++v) {
          for (py::ssize_t k = 0; k < d; ++k) *out++ = costs.compute(NodeId(v), DeviceId(k));
        }
        return result;
      },
      py::arg("graph"), py::arg("cluster"),
      "Compute seconds of every node on every device, float64 [n_nodes, n_devices]. Raises "
      "InvalidError if this model cannot price the graph on the cluster.");
  def_copy(bound);
  bound.def(py::self == py::self);
  bound.def("__hash__", &CostModel::hash);
  bound.def("__repr__", [](const CostModel& model) {
    return py::str("<cost model: {}>").format(printed(model));
  });
  bound.def(py::pickle(
      [](const CostModel& model) {
        const bool raw = model.kind() == CostModel::Kind::raw;
        const bool measured = model.kind() == CostModel::Kind::profile;
        return py::make_tuple(raw, measured ? py::object(to_python(to_json(model.profile())))
                                            : py::object(py::none()));
      },
      [](const py::tuple& state) {
        if (state.size() != 2) throw UsageError("the state of a CostModel has two parts");
        if (boolean_of(state[0], "state")) return CostModel::raw();
        if (state[1].is_none()) return CostModel::analytical();
        return CostModel::measured(parse_profile(text_of(state[1], "state"), "state"));
      }));
}

}  // namespace

void bind_clusters(py::module_& module) {
  bind_device(module);
  bind_cluster(module);
  bind_cost_model(module);
}

}  // namespace doppler::python
