/// @file
/// Parts of records that are one text in a column of the database. Reading throws EnvironmentError
/// for a text that cannot have been written here: a run may have been fetched from a bucket.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "store/run_store.hpp"

namespace pipeline::store {

/// The column beside the driver's process number: when the process was started, its sign of life
/// and its host; of a driver elsewhere its Lease, as JSON, which the start of a process never is.
std::string write_driver(const Driver& driver);
Driver read_driver(std::int64_t pid, std::string text);

std::string write_outputs(const std::vector<OutputRecord>& outputs);
std::vector<OutputRecord> read_outputs(const std::string& text);

std::string write_gpus(const std::vector<event::Gpu>& gpus);
std::vector<event::Gpu> read_gpus(const std::string& text);

std::string write_parts(const std::vector<KeyPart>& parts);

}  // namespace pipeline::store
