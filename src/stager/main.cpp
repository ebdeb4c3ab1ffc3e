// Transfers a step's files between its pod and the bucket (carry.hpp). Linked statically, so that
// it runs in any image.
// Usage: pipe-stager fetch DOCUMENT FOLDER         downloads the inputs; copies itself and the
//                                                  agent beside it to FOLDER
//        pipe-stager collect DOCUMENT EXIT_CODE    uploads the outputs
// The reason of a failure is in the container's termination message.
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>

#include <fcntl.h>
#include <openssl/crypto.h>
#include <sys/stat.h>
#include <unistd.h>

#include "core/bounded_json.hpp"
#include "core/file.hpp"
#include "stager/carry.hpp"

namespace {

using nlohmann::json;
namespace fs = std::filesystem;
using namespace pipeline;

void tell(const char* what, const std::string& message, bool passes) {
  constexpr std::size_t most = 3000;  // A cluster keeps 4096 bytes.
  const auto text = json{{what, message.substr(0, most)}, {"passes", passes}}.dump(
      -1, ' ', true, json::error_handler_t::replace);
  std::fprintf(stderr, "pipe-stager: %s\n", message.c_str());
  const core::Descriptor file(::open("/dev/termination-log", O_WRONLY | O_TRUNC | O_CLOEXEC));
  if (file && ::write(file.get(), text.data(), text.size()) < 0) std::perror("pipe-stager");
}

void bring(const fs::path& from, const fs::path& to) {
  core::write_file_atomically(to, core::read_file(from));
  fs::permissions(to, fs::perms(0555));
}

}  // namespace

int main(int count, char** arguments) {
  if (count != 4) return 125;
  OPENSSL_init_crypto(OPENSSL_INIT_NO_LOAD_CONFIG, nullptr);
  signal(SIGPIPE, SIG_IGN);
  umask(0);  // Other users in the pod read it.
  const bool is_fetch = std::strcmp(arguments[1], "fetch") == 0;
  const char* what = is_fetch ? "not_fetched" : "not_collected";
  try {
    const auto here = fs::read_symlink("/proc/self/exe").parent_path();
    const auto document = core::parse_json(core::read_file(arguments[2]));
    auto authorities = document.value("authorities", std::string());
    if (authorities.empty() && fs::exists(here / "ca.pem"))
      authorities = core::read_file(here / "ca.pem");
    stager::Transfer transfer(std::move(authorities));
    if (is_fetch) {
      for (const char* each : {"agent", "stager", "ca.pem"})
        if (fs::exists(here / each)) bring(here / each, fs::path(arguments[3]) / each);
      stager::fetch(document, transfer);
    } else {
      stager::collect(document, std::atoi(arguments[3]), transfer);
    }
    return 0;
  } catch (const stager::TransferError& error) {
    tell(what, error.what(), error.passes());
  } catch (const std::exception& error) {
    tell(what, error.what(), false);
  }
  return 1;
}
