/// @file
/// Samples the GPUs of the pod while its step runs, by an nvidia-smi beside it.
#pragma once

#include <sys/types.h>

#include <csignal>

#include "gpu/smi_samples.hpp"

namespace pipeline::kubernetes_api {

class GpuWatch {
 public:
  /// Starts nvidia-smi. Where the image or the node has none, there is nothing to read.
  /// @param mask the signals that it blocks
  void start(const sigset_t& mask);
  /// Its output; -1 if there is none.
  int file() const { return file_; }
  /// Its process, whose accounts are not the step's; -1 before start().
  pid_t process() const { return process_; }
  /// Reads what has arrived.
  void read();
  /// Kills it and reads the rest. It may be alive for longer: the driver can hang.
  void stop();
  /// Writes the member `,"gpus":[...]` of what the step has used, or nothing if there was no
  /// sample. Returns its size.
  std::size_t write(char* text, std::size_t size) const;

 private:
  gpu::SmiSamples samples_;
  pid_t process_ = -1;
  int file_ = -1;
};

}  // namespace pipeline::kubernetes_api
