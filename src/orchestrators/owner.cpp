#include "orchestrators/owner.hpp"

#include <fstream>

#include <unistd.h>

#include "core/digest.hpp"

namespace pipeline::orchestrators {

std::string owner_of(const std::filesystem::path& state) {
  std::string machine;
  std::ifstream("/etc/machine-id") >> machine;
  char host[256] = {};
  gethostname(host, sizeof host - 1);
  core::Hasher hasher;
  hasher.field(machine)
      .field(host)
      .field(std::to_string(geteuid()))
      .field(std::filesystem::weakly_canonical(state).string());
  return hasher.finish().hex().substr(0, 16);
}

}  // namespace pipeline::orchestrators
