/// @file
/// The state of collective operations that NCCL itself reports, for a step that has stalled.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "orchestrators/attempts.hpp"

namespace pipeline::engine {

/// Reads what `ncclras` prints (NCCL 2.24 and newer). Returns its lines about errors and warnings,
/// 40 at most, and before them, if the ranks have not all launched the same operation, one that
/// says so: `NCCL: rank 3 has launched AllReduce only up to operation 6649, 7 ranks up to 6650`.
/// Returns no lines if NCCL reports no error, or if `text` is not a report of `ncclras`.
/// @param text untrusted: a step may have put the program there
std::vector<std::string> read_nccl_state(std::string_view text);

/// Runs `ncclras` beside the processes of an attempt, if their PATH has it, for some seconds at
/// most, and returns the lines that read_nccl_state() finds in its output.
async::Task<std::vector<std::string>> nccl_state(orchestrators::AttemptRunner& runner,
                                                 const orchestrators::Attempt& attempt);

}  // namespace pipeline::engine
