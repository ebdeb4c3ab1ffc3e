/// @file
/// The stop of reading and hashing files, which threads of the pool do and no coroutine ends.
#pragma once

namespace pipeline::core {

/// Makes threads of this process that read a file give up, for a process that is to end at once.
/// @param is_stopped false: files are read again
void stop_reading(bool is_stopped) noexcept;
/// Throws EnvironmentError if reading is stopped; to be called between pieces of a file.
void check_reading();

}  // namespace pipeline::core
