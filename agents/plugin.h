/* Agents in shared libraries of their own: a C interface, so that compiler, standard library and
   version of DopplerGym need not be those of the program that loads them.

   A plugin exports doppler_plugin_v1(), which returns its description. It needs this header only:
   c++ -shared -fPIC mine.cc -o libmine.so, then
   doppler-gym leaderboard run --suite paper-4 --plugin ./libmine.so
   examples/plugin/earliest_start.cc is a whole one. Fields are only ever added at the ends of the
   structures of one version; what breaks more has another number. */
#ifndef DOPPLER_AGENTS_PLUGIN_H_
#define DOPPLER_AGENTS_PLUGIN_H_

#include <stddef.h> /* NOLINT: this is C, too */
#include <stdint.h> /* NOLINT: this is C, too */

#ifdef __cplusplus
extern "C" {
#endif

#define DOPPLER_PLUGIN_VERSION 1

/* A task, and what may be spent on it. Everything is valid during decide() only, and belongs to the
   caller. Nodes, edges and devices are counted from 0, nodes in the graph's order. */
typedef struct doppler_problem {
  size_t size; /* sizeof(doppler_problem) of the program that calls */
  int64_t n_nodes;
  int64_t n_edges;
  int64_t n_devices;
  const double* compute;      /* seconds, [n_nodes, n_devices] */
  const int64_t* edge_from;   /* producer, [n_edges] */
  const int64_t* edge_to;     /* reader, [n_edges] */
  const double* edge_bytes;   /* of the tensor that the edge carries, [n_edges] */
  const int64_t* edge_tensor; /* edges of one tensor: sent once to each other device, [n_edges] */
  uint64_t seed;              /* of all luck of the agent */
  int64_t max_evaluations;    /* runs of the engine, at least 1 */
  double max_seconds;         /* to decide; may be infinite */
  /* Seconds to send so many bytes from a device to another one, without contention. */
  double (*transfer)(const struct doppler_problem* problem, double bytes, int32_t from, int32_t to);
  /* Runs the engine on an assignment, [n_nodes], and counts one evaluation. Returns the makespan in
     seconds (infinity: out of memory), or NaN if no evaluation is left or the assignment is not
     legal; NaN counts nothing. */
  double (*evaluate)(const struct doppler_problem* problem, const int32_t* assignment);
  void* host; /* the caller's own */
} doppler_problem;

typedef struct doppler_plugin_agent {
  const char* name;    /* letters, digits and "_-.+" */
  const char* summary; /* one line */
  const char* kind;    /* "heuristic", "search", "learned" or "other" */
  int deterministic;   /* 1: the same for every seed */
  /* Fills `assignment`, [n_nodes], with the device of each node and returns 0. Any other value is a
     failure, whose reason it writes to `message`, at most `message_size` bytes with the final 0. An
     assignment that was not run by evaluate() last costs one evaluation more, so an agent that
     calls it leaves one or returns what it ran. */
  int (*decide)(const doppler_problem* problem, int32_t* assignment, char* message,
                size_t message_size);
} doppler_plugin_agent;

typedef struct doppler_plugin {
  uint32_t version; /* DOPPLER_PLUGIN_VERSION */
  uint32_t n_agents;
  const doppler_plugin_agent* agents; /* [n_agents]; lives as long as the library is loaded */
} doppler_plugin;

/* What the library exports. */
typedef const doppler_plugin* (*doppler_plugin_entry)(void);
#define DOPPLER_PLUGIN_ENTRY "doppler_plugin_v1"

#ifdef __cplusplus
}
#endif

#endif /* DOPPLER_AGENTS_PLUGIN_H_ */
