// What the runtime needs of a machine: streams that run kernels and copies, memory for tensors, and
// to be told when a command has ended. The CPU backend implements it with threads, the CUDA backend
// with CUDA streams, and a test backend with neither, to try every order that these rules allow.
//
// Order. Commands of one stream run one after another in the order in which they were submitted.
// Commands of different streams run in any order and at the same time, unless a command names
// others in `after`: it starts when all of these have ended. The runtime never submits a command
// before those that it names, so that any backend which runs each stream in order cannot deadlock.
//
// Calls. The runtime makes one call at a time (it holds a lock of its own), on changing threads:
// that of the caller and those on which the backend calls Listener::completed(). run() and copy()
// of a stream return at once, without waiting for a command to end.
//
// Failures. A call that throws RunError has done nothing: the command was not submitted, nothing is
// allocated. A command that fails on the way is reported like any other, with a message. Commands
// behind it run or are skipped, as the backend likes, but every submitted command is reported
// exactly once; the runtime waits for all reports before it ends a run that failed. Afterwards the
// backend must be usable for another run.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>

#include "graphs/graph.h"
#include "graphs/ids.h"

namespace doppler::runtime {

// A command of a run, numbered from 0 in any order; its number is chosen by the runtime.
using CommandId = Id<struct CommandTag>;

// A block of a device's memory. A regular value that does not own the block; `data` is null if
// there are no bytes. Only the backend looks through `data`.
struct Buffer {
  DeviceId device = {};
  void* data = nullptr;
  std::size_t bytes = 0;
  friend bool operator==(const Buffer&, const Buffer&) = default;
};

// Runs one node of the graph that was loaded last.
struct KernelCommand {
  CommandId id = {};
  NodeId node = {};
  std::span<const CommandId> after = {};  // valid during the call, like the other spans
  // On the stream's device: the tensors of Graph::in_edges(node) in their order, then the graph
  // inputs that the node reads in ascending InputId. All written by commands that end before.
  std::span<const Buffer> inputs = {};
  std::span<const Buffer> outputs = {};  // one for each output of the node
};

// Copies a whole buffer to one of the same size on another device.
struct CopyCommand {
  CommandId id = {};
  std::span<const CommandId> after = {};
  Buffer from = {};
  Buffer to = {};
  // Seconds that the copy takes at least, to stand for a slower link; 0: as fast as it can. The
  // stream is held throughout.
  double least_seconds = 0;
};

// How a command went. Seconds since DeviceApi::begin().
struct Completion {
  CommandId command = {};
  double start = 0;          // when the stream reached it and everything in `after` had ended
  double end = 0;            // >= start
  std::string failure = {};  // what went wrong; empty: nothing
};

// Told of every command. Implemented by the runtime.
class Listener {
 public:
  virtual ~Listener() = default;
  // Called once for each submitted command, after it has ended and, on one stream, in its order. It
  // may be called by several threads at once, but never from within a call of the runtime's. Every
  // call of the interfaces below is allowed inside it, so that the backend must hold no lock and
  // must not be inside a driver's callback. Until it has returned, later commands may still name
  // this one in `after`. Does not throw.
  virtual void completed(const Completion& completion) = 0;
};

// A queue of commands that run in order. Destroyed only when no command is under way.
class Stream {
 public:
  virtual ~Stream() = default;

  // A block on `device`, which need not be the stream's own (a received copy's is the other one).
  // It may be used by commands submitted later to this stream, and by those that come after them.
  // Its content is unspecified. Throws RunError if the memory is full. Also allowed between runs.
  virtual Buffer allocate(DeviceId device, std::size_t bytes) = 0;
  // Gives back a block that was allocated by any stream. Every command that touches it has been
  // reported. Does not throw.
  virtual void release(const Buffer& buffer) = 0;

  // Throw RunError.
  virtual void run(const KernelCommand& command) = 0;
  virtual void copy(const CopyCommand& command) = 0;
};

// What a stream is for; a backend may give copies other hardware than kernels.
enum class StreamUse : std::uint8_t { kernels, copies };

// A machine with one or several devices, of which each has its own memory.
class DeviceApi {
 public:
  virtual ~DeviceApi() = default;

  // A stream of a device. A stream for copies belongs to the device that most of its copies leave.
  virtual std::unique_ptr<Stream> make_stream(DeviceId device, StreamUse use) = 0;
  // Bytes that all blocks of a device may take together; SIZE_MAX if nothing is known.
  virtual std::size_t memory(DeviceId device) = 0;

  // Prepares the nodes of a graph, for all runs until the next load(). Throws InvalidError that
  // names a node which the backend cannot run.
  virtual void load(const Graph& graph) = 0;

  // Moves data between the host and a block; return when it is done. Only between runs. The sizes
  // are equal.
  virtual void write(const Buffer& to, std::span<const std::byte> from) = 0;
  virtual void read(const Buffer& from, std::span<std::byte> to) = 0;

  // Begins a run: sets the zero of all seconds. Commands are numbered 0 to n_commands - 1. Nothing
  // is under way. Throws RunError; then there is no run, and no end().
  virtual void begin(std::size_t n_commands, Listener& listener) = 0;
  // Ends it: every command has been reported, and completed() has returned or is about to. Returns
  // when no thread of the backend is inside it. Does not throw.
  virtual void end() = 0;
  // Seconds by which instants of different devices may be off in the last run.
  [[nodiscard]] virtual double clock_error() const { return 0; }
};

}  // namespace doppler::runtime
