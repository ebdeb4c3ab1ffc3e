#include "agent/gpu_watch.hpp"

#include <algorithm>
#include <cstdio>

#include <fcntl.h>
#include <unistd.h>

namespace pipeline::agent {

void GpuWatch::start(const sigset_t& mask) {
  int ends[2];
  if (pipe2(ends, O_CLOEXEC) != 0) return;
  process_ = fork();
  if (process_ == 0) {
    signal(SIGPIPE, SIG_DFL);
    const int null_device = open("/dev/null", O_RDWR | O_CLOEXEC);
    dup2(null_device, STDIN_FILENO);
    dup2(ends[1], STDOUT_FILENO);
    dup2(null_device, STDERR_FILENO);
    sigprocmask(SIG_SETMASK, &mask, nullptr);
    const char* words[gpu::smi_command.size() + 1] = {};
    std::copy(gpu::smi_command.begin(), gpu::smi_command.end(), words);
    execvp(words[0], const_cast<char**>(words));
    _exit(127);
  }
  close(ends[1]);
  file_ = ends[0];
  fcntl(file_, F_SETFL, O_NONBLOCK);
}

void GpuWatch::read() {
  char bytes[2048];
  const ssize_t count = file_ < 0 ? 0 : ::read(file_, bytes, sizeof bytes);
  if (count > 0) samples_.feed({bytes, static_cast<std::size_t>(count)});
  if (count != 0) return;
  if (file_ >= 0) close(file_);
  file_ = -1;
}

void GpuWatch::stop() {
  if (process_ <= 0) return;
  kill(process_, SIGKILL);
  read();
}

std::size_t GpuWatch::write(char* text, std::size_t size) const {
  std::size_t length = 0;
  const auto put = [&](const char* format, auto... values) {
    const int count = snprintf(text + length, size - length, format, values...);
    if (count > 0) length = std::min(size - 1, length + static_cast<std::size_t>(count));
  };
  for (const auto& gpu : samples_.gpus()) {
    put("%s{\"index\":%u,\"uuid\":\"%s\",\"model\":\"%s\",", length == 0 ? ",\"gpus\":[" : ",",
        gpu.index, gpu.uuid, gpu.model);
    if (const auto mean = gpu.sums.mean_load())
      put("\"mean_load\":%.4f,\"peak_load\":%.2f,", *mean, gpu.sums.peak_load);
    put("\"mean_memory\":%llu,\"peak_memory\":%llu,\"memory\":%llu}",
        static_cast<unsigned long long>(gpu.sums.mean_used()),
        static_cast<unsigned long long>(gpu.sums.peak_used),
        static_cast<unsigned long long>(gpu.sums.memory));
  }
  if (length > 0) put("%s", "]");
  return length;
}

}  // namespace pipeline::agent
