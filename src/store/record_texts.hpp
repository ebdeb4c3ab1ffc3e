/// @file
/// Parts of records that are stored as one text in a column of the database. Reading throws
/// EnvironmentError for an invalid text, because a run may have been downloaded from a bucket.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "store/run_store.hpp"

namespace pipeline::store {

/// Serialises the column beside the driver's process number: the process's start time, its sign of
/// life and its host; for a driver elsewhere its Lease as JSON, which the start time never is.
std::string write_driver(const Driver& driver);
Driver read_driver(std::int64_t pid, std::string text);

std::string write_outputs(const std::vector<OutputRecord>& outputs);
std::vector<OutputRecord> read_outputs(const std::string& text);

std::string write_gpus(const std::vector<event::Gpu>& gpus);
std::vector<event::Gpu> read_gpus(const std::string& text);

/// What was measured of an attempt, and its code, as a JSON object; empty if nothing is known.
std::string write_measured(const AttemptRecord& attempt);
void read_measured(const std::string& text, AttemptRecord& attempt);

std::string write_parts(const std::vector<KeyPart>& parts);
/// Leaves out what is no part.
std::vector<KeyPart> read_parts(const std::string& text);

}  // namespace pipeline::store
