#include "orchestrators/kubernetes/kept_log.hpp"

#include <unistd.h>

#include <algorithm>

#include "core/regular_file.hpp"
#include "orchestrators/kubernetes/manifest.hpp"

namespace pipeline::orchestrators::kubernetes {

std::string read_kept_log(const std::filesystem::path& scratch, std::uint64_t offset,
                          std::size_t size) {
  const auto file = core::open_untrusted_file(scratch / kept_log_name);
  std::string bytes(size, '\0');
  const auto count = file ? ::pread(file.get(), bytes.data(), size, static_cast<off_t>(offset)) : 0;
  bytes.resize(static_cast<std::size_t>(std::max<ssize_t>(count, 0)));
  return bytes;
}

}  // namespace pipeline::orchestrators::kubernetes
