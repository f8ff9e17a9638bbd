// Execution, and what a simulator gives.
#include "executor/execution.h"

#include <pybind11/operators.h>
#include <pybind11/stl.h>

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <memory>
#include <mutex>
#include <thread>

#include "executor/shared_engine.h"
#include "graphs/error.h"
#include "python/bindings/convert.h"
#include "python/bindings/options.h"
#include "python/bindings/rooms.h"
#include "python/bindings/simulator.h"

namespace doppler::python {
namespace {

// The fields of TransferRun as numpy sees them.
py::dtype transfer_dtype() {
  py::list names, formats, offsets;
  const auto field = [&](const char* name, const py::dtype& format, std::size_t offset) {
    names.append(name);
    formats.append(format);
    offsets.append(offset);
  };
  const auto truth = py::dtype::of<bool>();
  const auto number = py::dtype::of<std::int32_t>();
  const auto real = py::dtype::of<double>();
  field("of_input", truth, offsetof(TransferRun, of_input));
  field("tensor", number, offsetof(TransferRun, tensor));
  field("input", number, offsetof(TransferRun, input));
  field("source", number, offsetof(TransferRun, from));
  field("target", number, offsetof(TransferRun, to));
  field("channel", number, offsetof(TransferRun, channel));
  field("requested", real, offsetof(TransferRun, requested));
  field("start", real, offsetof(TransferRun, start));
  field("end", real, offsetof(TransferRun, end));
  field("bytes", real, offsetof(TransferRun, bytes));
  return {std::move(names), std::move(formats), std::move(offsets), sizeof(TransferRun)};
}

py::array transfers_of(const py::object& self) {
  const auto& transfers = self.cast<const Execution&>().transfers;
  const auto n = static_cast<py::ssize_t>(transfers.size());
  if (n == 0) return py::array(transfer_dtype(), std::vector<py::ssize_t>{0});
  py::array result(transfer_dtype(), std::vector<py::ssize_t>{n},
                   std::vector<py::ssize_t>{sizeof(TransferRun)}, transfers.data(), self);
  result.attr("setflags")(py::arg("write") = false);
  return result;
}

// Everything of an Execution as Python's own numbers, and back.
py::tuple state_of(const Execution& execution) {
  py::list nodes, transfers, devices;
  for (const NodeRun& run : execution.nodes) {
    nodes.append(py::make_tuple(run.device.value, run.slot, run.ready, run.start, run.end));
  }
  for (const TransferRun& run : execution.transfers) {
    transfers.append(py::make_tuple(run.of_input, run.tensor.value, run.input.value, run.from.value,
                                    run.to.value, run.channel.value, run.requested, run.start,
                                    run.end, run.bytes));
  }
  for (const DeviceUse& use : execution.devices) {
    devices.append(py::make_tuple(use.busy, use.peak_memory));
  }
  py::object out_of_memory = py::none();
  if (const auto& out = execution.out_of_memory) {
    out_of_memory = py::make_tuple(out->device.value, out->needed, out->available);
  }
  return py::make_tuple(execution.makespan, nodes, transfers, devices, execution.bytes_moved,
                        execution.bytes_local, out_of_memory, py::cast(execution.makespans),
                        execution.clock_error);
}

Execution execution_of(const py::tuple& state) {
  if (state.size() != 9) throw UsageError("the state of an Execution has nine parts");
  Execution execution;
  execution.makespan = state[0].cast<double>();
  const auto whole = [](py::handle value) { return value.cast<std::int32_t>(); };
  const auto real = [](py::handle value) { return value.cast<double>(); };
  for (const py::handle item : state[1]) {
    const auto run = item.cast<py::tuple>();
    execution.nodes.push_back({.device = DeviceId(whole(run[0])),
                               .slot = whole(run[1]),
                               .ready = real(run[2]),
                               .start = real(run[3]),
                               .end = real(run[4])});
  }
  for (const py::handle item : state[2]) {
    const auto run = item.cast<py::tuple>();
    execution.transfers.push_back({.of_input = run[0].cast<bool>(),
                                   .tensor = TensorId(whole(run[1])),
                                   .input = InputId(whole(run[2])),
                                   .from = DeviceId(whole(run[3])),
                                   .to = DeviceId(whole(run[4])),
                                   .channel = ChannelId(whole(run[5])),
                                   .requested = real(run[6]),
                                   .start = real(run[7]),
                                   .end = real(run[8]),
                                   .bytes = real(run[9])});
  }
  for (const py::handle item : state[3]) {
    const auto use = item.cast<py::tuple>();
    execution.devices.push_back({.busy = real(use[0]), .peak_memory = real(use[1])});
  }
  execution.bytes_moved = real(state[4]);
  execution.bytes_local = real(state[5]);
  if (!state[6].is_none()) {
    const auto out = state[6].cast<py::tuple>();
    execution.out_of_memory = {
        .device = DeviceId(whole(out[0])), .needed = real(out[1]), .available = real(out[2])};
  }
  execution.makespans = state[7].cast<std::vector<double>>();
  execution.clock_error = real(state[8]);
  return execution;
}

template <class Field>
auto node_view(const Field& field) {
  return [field](const py::object& self) {
    return field_view(self.cast<const Execution&>().nodes, field, self);
  };
}

template <class Field>
auto device_view(const Field& field) {
  return [field](const py::object& self) {
    return field_view(self.cast<const Execution&>().devices, field, self);
  };
}

void bind_execution(py::module_& module) {
  py::class_<OutOfMemory> out(module, "OutOfMemory", "A device that had too little memory.");
  out.def_property_readonly("device", [](const OutOfMemory& o) { return o.device.value; });
  out.def_readonly("needed", &OutOfMemory::needed, "Bytes: the peak of the device.");
  out.def_readonly("available", &OutOfMemory::available, "Bytes.");
  out.def(py::self == py::self);
  out.attr("__hash__") = py::none();
  out.def("__repr__", [](const OutOfMemory& o) {
    return py::str("<device {} out of memory: needs {} of {} bytes>")
        .format(o.device.value, o.needed, o.available);
  });

  py::class_<Execution> bound(module, "Execution", R"(What an engine returns; an immutable value.

Arrays are read-only views that keep the execution alive. Seconds count from its start.)");
  bound.def_readonly("makespan", &Execution::makespan,
                     "Seconds to the end of the last node; inf if out_of_memory.");
  bound.def_property_readonly(
      "makespans",
      [](const Execution& execution) {
        return py::array_t<double>(static_cast<py::ssize_t>(execution.makespans.size()),
                                   execution.makespans.data());
      },
      R"(Makespans of all runs that a real engine made, seconds, float64 [repeats].

makespan is their median, and everything else is of that run. Empty for the simulator.)");
  bound.def_readonly("clock_error", &Execution::clock_error,
                     "Seconds by which instants of different devices may be off; 0: one clock.");
  bound.def_readonly("bytes_moved", &Execution::bytes_moved,
                     "Bytes that went to another device than their producer's.");
  bound.def_readonly("bytes_local", &Execution::bytes_local,
                     "Bytes that were read on their producer's device.");
  bound.def_readonly(
      "out_of_memory", &Execution::out_of_memory,
      "The first device whose memory was too small, if memory is enforced; or None.");
  bound.def_property_readonly(
      "devices", node_view([](const NodeRun& run) -> auto& { return run.device.value; }),
      "Device of each node, int32 [n_nodes].");
  bound.def_property_readonly("slots",
                              node_view([](const NodeRun& run) -> auto& { return run.slot; }),
                              "Compute slot of its device, int32 [n_nodes].");
  bound.def_property_readonly("ready",
                              node_view([](const NodeRun& run) -> auto& { return run.ready; }),
                              "When every input of a node was there, seconds, float64 [n_nodes].");
  bound.def_property_readonly("starts",
                              node_view([](const NodeRun& run) -> auto& { return run.start; }),
                              "Start of each node, seconds, float64 [n_nodes].");
  bound.def_property_readonly("ends",
                              node_view([](const NodeRun& run) -> auto& { return run.end; }),
                              "End of each node, seconds, float64 [n_nodes].");
  bound.def_property_readonly("transfers", &transfers_of,
                              R"(Transfers in the order of their requests, a structured array:

of_input (bool: a graph input, else a node's output), tensor or input (its number), source and
target (devices), channel, requested, start, end (seconds), bytes.)");
  bound.def_property_readonly("busy",
                              device_view([](const DeviceUse& use) -> auto& { return use.busy; }),
                              "Seconds that a device's slots computed, float64 [n_devices].");
  bound.def_property_readonly(
      "peak_memory", device_view([](const DeviceUse& use) -> auto& { return use.peak_memory; }),
      "Largest bytes in use, float64 [n_devices].");
  def_copy(bound);
  bound.def(py::self == py::self);
  bound.attr("__hash__") = py::none();
  bound.def("__repr__",
            [](const Execution& execution) { return py::str("<{}>").format(printed(execution)); });
  bound.def(py::pickle(&state_of, &execution_of));
}

std::uint64_t seed_or(const py::object& seed, const Task& task) {
  return seed.is_none() ? task.options.seed : seed_of(seed);
}

Execution run(SharedSimulator& self, const py::object& assignment, const py::object& seed) {
  const Assignment devices = assignment_of(assignment, self.task.graph, self.task.cluster);
  const std::uint64_t luck = seed_or(seed, self.task);
  const py::gil_scoped_release unlocked;
  const std::scoped_lock lock(self.mutex);
  return self.simulator.run(devices, luck);
}

double makespan(SharedSimulator& self, const py::object& assignment, const py::object& seed) {
  const Assignment devices = assignment_of(assignment, self.task.graph, self.task.cluster);
  const std::uint64_t luck = seed_or(seed, self.task);
  const py::gil_scoped_release unlocked;
  const std::scoped_lock lock(self.mutex);
  return self.simulator.makespan(devices.devices, luck);
}

// In parts of about a tenth of a second, so that Ctrl-C ends a long call.
py::array_t<double> makespans(SharedSimulator& self, const py::object& assignments,
                              const py::object& threads) {
  const auto array = integers_of(assignments, "assignments");
  const std::size_t n = self.task.graph.n_nodes();
  if (array.ndim() != 2 || static_cast<std::size_t>(array.shape(1)) != n) {
    throw UsageError("assignments: expected shape (k, " + std::to_string(n) +
                     "), one assignment a row, got " + description_of(array));
  }
  const auto n_rows = static_cast<std::size_t>(array.shape(0));
  const auto devices = devices_of(array, self.task.cluster.n_devices(), "assignments");
  const auto n_threads = static_cast<int>(integer_of(threads, "threads", 0, 1024));
  py::array_t<double> result(static_cast<py::ssize_t>(n_rows));
  double* out = result.mutable_data();
  const std::size_t at_once = n_threads == 0 ? std::max(1U, std::thread::hardware_concurrency())
                                             : static_cast<std::size_t>(n_threads);
  std::size_t part = std::max(at_once, 100'000 / (n + 1));
  for (std::size_t row = 0; row < n_rows;) {
    const std::size_t count = std::min(part, n_rows - row);
    const auto begin = std::chrono::steady_clock::now();
    {
      const py::gil_scoped_release unlocked;
      const std::scoped_lock lock(self.mutex);
      if (n == 0) {
        std::fill_n(out + row, count, self.simulator.makespan({}));
      } else {
        const auto rows = std::span(devices).subspan(row * n, count * n);
        const auto values = self.simulator.makespans(rows, n_threads);
        std::copy(values.begin(), values.end(), out + row);
      }
    }
    row += count;
    if (PyErr_CheckSignals() != 0) throw py::error_already_set();
    if (std::chrono::steady_clock::now() - begin < std::chrono::milliseconds(50)) part *= 2;
  }
  return result;
}

double set_base(SharedSimulator& self, const py::object& assignment) {
  const Assignment devices = assignment_of(assignment, self.task.graph, self.task.cluster);
  const py::gil_scoped_release unlocked;
  const std::scoped_lock lock(self.mutex);
  return self.simulator.set_base(devices.devices);
}

using Move = double (Simulator::*)(NodeId, DeviceId);

auto mover(Move move) {
  return [move](SharedSimulator& self, const py::object& node, const py::object& device) {
    constexpr std::int64_t kLargest = std::numeric_limits<std::int32_t>::max();
    const NodeId v(integer_of(node, "node", 0, kLargest));
    const DeviceId d(integer_of(device, "device", 0, kLargest));
    const py::gil_scoped_release unlocked;
    const std::scoped_lock lock(self.mutex);
    return (self.simulator.*move)(v, d);
  };
}

std::unique_ptr<SharedSimulator> make_simulator(const Graph& graph, const Cluster& cluster,
                                                const py::kwargs& options) {
  Task task = task_of(graph, cluster, options, false);
  const py::gil_scoped_release unlocked;
  return std::make_unique<SharedSimulator>(std::move(task));
}

Execution simulate(const Graph& graph, const Cluster& cluster, const py::object& assignment,
                   const py::kwargs& options) {
  const Assignment devices = assignment_of(assignment, graph, cluster);
  const Task task = task_of(graph, cluster, options, false);
  const py::gil_scoped_release unlocked;
  return task.simulator().run(devices);
}

void bind_simulator(py::module_& module) {
  py::class_<SharedSimulator> bound(module, "Simulator",
                                    R"(Simulator(graph, cluster, *, network="channel",
policy="fifo", ...)

The work-conserving simulator for one graph on one cluster; quick for many assignments. Keywords are
those of Task. Several threads may share one: they take turns.)");
  bound.def(py::init(&make_simulator), py::arg("graph"), py::arg("cluster"));
  bound.def_property_readonly("graph", [](const SharedSimulator& self) { return self.task.graph; });
  bound.def_property_readonly("cluster",
                              [](const SharedSimulator& self) { return self.task.cluster; });
  bound.def("run", &run, py::arg("assignment"), py::kw_only(), py::arg("seed") = py::none(),
            R"(The Execution of an assignment, integers [n_nodes].

seed: of noise and policy "random"; the simulator's own without. Raises UsageError for a wrong dtype
or shape, InvalidError that names a node without a device of the cluster.)");
  bound.def("makespan", &makespan, py::arg("assignment"), py::kw_only(),
            py::arg("seed") = py::none(),
            "The makespan alone, seconds; inf if memory is enforced and too small. See run().");
  bound.def("makespans", &makespans, py::arg("assignments"), py::kw_only(), py::arg("threads") = 1,
            R"(Makespans of k assignments, integers [k, n_nodes]: seconds, float64 [k].

threads: how many run at once, 0: one a core; the values do not depend on it. All with the
simulator's seed. Raises as run() does, naming row and node.)");
  bound.def("set_base", &set_base, py::arg("assignment"),
            "Remembers an assignment for makespan_after_move(); returns its makespan.");
  bound.def("makespan_after_move", mover(&Simulator::makespan_after_move), py::arg("node"),
            py::arg("device"),
            "The makespan of the base with one node elsewhere, resumed where that first matters.");
  bound.def("accept_move", mover(&Simulator::accept_move), py::arg("node"), py::arg("device"),
            "The same, and the result is the new base.");
  bound.def("__repr__", [](const SharedSimulator& self) {
    return py::str("<simulator of {} on {}; {}>")
        .format(printed(self.task.graph), printed(self.task.cluster), printed(self.task.options));
  });
  bound.def(py::pickle([](const SharedSimulator& self) { return py::make_tuple(self.task); },
                       [](const py::tuple& state) {
                         if (state.size() != 1 || !py::isinstance<Task>(state[0])) {
                           throw UsageError("the state of a Simulator is a Task");
                         }
                         return std::make_unique<SharedSimulator>(state[0].cast<const Task&>());
                       }));
  bound.def("__copy__", [](const SharedSimulator& self) {
    return std::make_unique<SharedSimulator>(self.task);
  });
  bound.def(
      "__deepcopy__",
      [](const SharedSimulator& self, const py::object& /*memo*/) {
        return std::make_unique<SharedSimulator>(self.task);
      },
      py::arg("memo"));
  module.def("simulate", &simulate, py::arg("graph"), py::arg("cluster"), py::arg("assignment"),
             R"(simulate(graph, cluster, assignment, *, network="channel", policy="fifo", ...)

The Execution of one assignment, integers [n_nodes]. Keywords are those of Task. For many
assignments a Simulator is quicker.

Raises UsageError, or InvalidError for parts that do not fit each other.)");
}

Execution execute(SharedEngine& self, const Task& task, const py::object& assignment,
                  const py::object& seed) {
  const Assignment devices = assignment_of(assignment, task.graph, task.cluster);
  RunOptions options = task.options;
  options.seed = seed_or(seed, task);
  options.record_timeline = true;
  const py::gil_scoped_release unlocked;
  return self.run(task.graph, task.cluster, task.cost_model, devices, options);
}

void bind_engine(py::module_& module) {
  py::class_<SharedEngine> bound(module, "Engine", R"(Engine(name)

What executes an assignment, by its registered name with parameters: ``cpu(repeats=5)``. Real engines
run kernels and transfers on this machine, one execution at a time; other threads and processes
wait. Devices, and the graph inputs in their memory, are kept from run to run.)");
  bound.def(py::init<const std::string&>(), py::arg("name"));
  bound.def_property_readonly("name", &SharedEngine::spelling);
  bound.def("run", &execute, py::arg("task"), py::arg("assignment"), py::kw_only(),
            py::arg("seed") = py::none(),
            R"(The Execution of an assignment of the task, integers [n_nodes].

seed: of policy "random"; the task's own without. Raises UsageError or InvalidError for what does not
fit or cannot be executed, RunError for a run that failed.)");
  bound.def("__repr__",
            [](const SharedEngine& self) { return "<engine " + self.spelling() + ">"; });
  bound.def(py::pickle([](const SharedEngine& self) { return py::make_tuple(self.spelling()); },
                       [](const py::tuple& state) {
                         if (state.size() != 1)
                           throw UsageError("the state of an Engine is a name");
                         return std::make_unique<SharedEngine>(state[0].cast<std::string>());
                       }));
}

}  // namespace

void bind_executor(py::module_& module) {
  bind_execution(module);
  bind_simulator(module);
  bind_engine(module);
}

}  // namespace doppler::python
