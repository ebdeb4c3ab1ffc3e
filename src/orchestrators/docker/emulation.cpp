#include "orchestrators/docker/emulation.hpp"

#include <algorithm>
#include <array>

#include "orchestrators/usage/kernel_file.hpp"
#include "settings/platform.hpp"

namespace pipeline::orchestrators::docker_engine {
namespace {

namespace fs = std::filesystem;

struct Architecture {
  std::string_view name;    ///< Go's name.
  std::string_view kernel;  ///< The name in the names of QEMU's handlers.
  std::string_view native;  ///< Machines of this architecture need no emulator for it.
};
constexpr std::array architectures{
    Architecture{"amd64", "x86_64", "amd64"},  Architecture{"386", "i386", "amd64"},
    Architecture{"arm64", "aarch64", "arm64"}, Architecture{"arm", "arm", "arm64"},
    Architecture{"ppc64le", "ppc64le", ""},    Architecture{"s390x", "s390x", ""},
    Architecture{"riscv64", "riscv64", ""},    Architecture{"mips64le", "mips64el", ""},
    Architecture{"loong64", "loongarch64", ""}};

}  // namespace

bool cannot_execute(const std::string& platform, const std::string& architecture,
                    const fs::path& proc) {
  const auto wanted = settings::architecture_of(platform);
  const auto known = std::ranges::find(architectures, wanted, &Architecture::name);
  if (wanted == architecture || known == architectures.end() || known->native == architecture)
    return false;
  // Without the file system binfmt_misc in the kernel, no handler can be registered.
  if (usage::kernel_text(proc / "filesystems").find("binfmt_misc") == std::string::npos)
    return true;
  const auto handlers = proc / "sys/fs/binfmt_misc";
  std::error_code error;
  if (!fs::exists(handlers / "register", error))
    return false;  // The file system is not mounted here.
  for (const auto& entry : fs::directory_iterator(handlers, error)) {
    const auto name = entry.path().filename().string();
    if (name == "register" || name == "status") continue;
    // Rosetta, FEX and box64 execute x86 on arm64, and have names of their own.
    const bool is_qemu = name.starts_with("qemu-");
    if (is_qemu ? name == "qemu-" + std::string(known->kernel)
                : wanted == "amd64" || wanted == "386")
      if (usage::kernel_text(entry.path()).starts_with("enabled")) return false;
  }
  return true;
}

}  // namespace pipeline::orchestrators::docker_engine
