/// @file
/// Texts that hold several parts of a record in one column of the database. Reading throws
/// EnvironmentError for an invalid text, because a run may have been downloaded from a bucket.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "store/attempts.hpp"
#include "store/cache_entries.hpp"
#include "store/records.hpp"

namespace pipeline::store {

inline std::int64_t to_integer(WallTime time) { return time.time_since_epoch().count(); }
inline WallTime to_time(std::int64_t milliseconds) {
  return WallTime(std::chrono::milliseconds(milliseconds));
}

/// Serialises the column beside the driver's process number: the process's start time, its liveness
/// probe and its host. A driver that holds a Lease is written as that Lease in JSON; a start time
/// never begins with `[`.
std::string write_driver(const Driver& driver);
Driver read_driver(std::int64_t pid, std::string text);

std::string write_outputs(const std::vector<OutputRecord>& outputs);
std::vector<OutputRecord> read_outputs(const std::string& text);

std::string write_gpus(const std::vector<event::Gpu>& gpus);
std::vector<event::Gpu> read_gpus(const std::string& text);

/// Returns usage, phases, code, node and image of an attempt as JSON; empty if none is known.
std::string write_measured(const AttemptRecord& attempt);
void read_measured(const std::string& text, AttemptRecord& attempt);
/// Returns usage, running time, GPUs and node rank of a task as JSON; empty if none is known.
std::string write_measured(const TaskRecord& task);
void read_measured(const std::string& text, TaskRecord& task);

/// Serialises hints and details as a JSON object, at most 40 lines of 2,000 bytes each; empty if
/// there are none.
std::string write_failure(const FailureRecord& failure);
FailureRecord read_failure(const std::string& text);

std::string write_parts(const std::vector<KeyPart>& parts);
/// Leaves out entries that are not parts of a key.
std::vector<KeyPart> read_parts(const std::string& text);

}  // namespace pipeline::store
