// The command `doppler-gym` as a function.
#pragma once

namespace doppler::cli {

// Runs one command line and returns the exit code: 0, 1 for a run that failed, 2 for bad use, 130
// after Ctrl-C (143 after SIGTERM), 141 if the reader of standard output went away. A mistake is
// told in one message on standard error. Nothing is thrown. Blocks SIGINT, SIGTERM and SIGHUP in
// the calling thread and ignores SIGPIPE; call it once a process.
int run_command(int argc, const char* const* argv);

}  // namespace doppler::cli
