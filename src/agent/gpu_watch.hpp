/// @file
/// Samples the GPUs of the pod with nvidia-smi while the step runs.
#pragma once

#include <sys/types.h>

#include <csignal>

#include "gpu/smi_samples.hpp"

namespace pipeline::agent {

class GpuWatch {
 public:
  /// Starts nvidia-smi. Without nvidia-smi in the image or on the node, there are no samples.
  /// @param mask the signals that nvidia-smi blocks
  void start(const sigset_t& mask);
  /// Returns the pipe with the output of nvidia-smi; -1 before start() and after its end.
  int file() const { return file_; }
  /// Returns the process of nvidia-smi, whose usage is not the step's; -1 before start().
  pid_t process() const { return process_; }
  /// Reads available output: 2 KiB at most, so that the caller can look at its other files.
  void read();
  /// Kills nvidia-smi and reads the last of its output. Does not wait for nvidia-smi, which can
  /// hang in the GPU driver.
  void stop();
  /// Writes the member `,"gpus":[...]` of the step's usage if there are samples. Returns the size
  /// in bytes; 0 without samples.
  std::size_t write(char* text, std::size_t size) const;

 private:
  gpu::SmiSamples samples_;
  pid_t process_ = -1;
  int file_ = -1;
};

}  // namespace pipeline::agent
