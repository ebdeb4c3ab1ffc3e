#include "orchestrators/kubernetes/kept_log.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>

#include "core/file.hpp"
#include "orchestrators/kubernetes/manifest.hpp"

namespace pipeline::orchestrators::kubernetes {

std::string read_kept_log(const std::filesystem::path& scratch, std::uint64_t place,
                          std::size_t size) {
  const core::Descriptor file(
      ::open((scratch / kept_log_name).c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK));
  std::string bytes(size, '\0');
  const auto count = file ? ::pread(file.get(), bytes.data(), size, static_cast<off_t>(place)) : 0;
  bytes.resize(static_cast<std::size_t>(std::max<ssize_t>(count, 0)));
  return bytes;
}

}  // namespace pipeline::orchestrators::kubernetes
