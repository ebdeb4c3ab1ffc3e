#include "orchestrators/owner.hpp"

#include <fstream>

#include <unistd.h>

#include "core/digest.hpp"

namespace pipeline::orchestrators {

std::string machine_name() {
  char host[256] = {};
  return gethostname(host, sizeof host - 1) == 0 ? host : std::string();
}

std::string owner_of(const std::filesystem::path& state) {
  std::string machine;
  std::ifstream("/etc/machine-id") >> machine;
  core::Hasher hasher;
  hasher.field(machine)
      .field(machine_name())
      .field(std::to_string(geteuid()))
      .field(std::filesystem::weakly_canonical(state).string());
  return hasher.finish().hex().substr(0, 16);
}

}  // namespace pipeline::orchestrators
