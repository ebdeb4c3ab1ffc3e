// Transfers a step's files between its pod and the remote store (carry.hpp). Linked statically, so
// that it runs in any image. Usage: pipe-stager fetch DOCUMENT FOLDER         downloads the inputs;
// copies itself and the
//                                                  agent beside it to FOLDER
//        pipe-stager keep DOCUMENT                 uploads the checkpoint whenever it has changed
//        pipe-stager save DOCUMENT                 uploads it now; no process may write to it
//        pipe-stager collect DOCUMENT EXIT_CODE    uploads the outputs
// The reason of a failure of `fetch` and `collect` is in the container's termination message, and
// what became of a checkpoint that `fetch` restores.
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <filesystem>
#include <functional>
#include <string_view>

#include <fcntl.h>
#include <openssl/crypto.h>
#include <sys/stat.h>
#include <unistd.h>

#include "core/bounded_json.hpp"
#include "core/file.hpp"
#include "stager/carry.hpp"
#include "stager/checkpoint.hpp"

namespace {

using nlohmann::json;
namespace fs = std::filesystem;
using namespace pipeline;

constexpr const char* marks_file = "checkpoint";  // Beside this program.

void leave(const json& message) {
  const auto text = message.dump(-1, ' ', true, json::error_handler_t::replace);
  const core::Descriptor file(::open("/dev/termination-log", O_WRONLY | O_TRUNC | O_CLOEXEC));
  if (file && ::write(file.get(), text.data(), text.size()) < 0) std::perror("pipe-stager");
}

void tell(const char* what, const std::string& message, bool passes) {
  constexpr std::size_t most = 3000;  // A cluster keeps 4096 bytes.
  std::fprintf(stderr, "pipe-stager: %s\n", message.c_str());
  leave({{what, message.substr(0, most)}, {"passes", passes}});
}

void bring(const fs::path& from, const fs::path& to) {
  core::write_file_atomically(to, core::read_file(from));
  fs::permissions(to, fs::perms(0555));
}

stager::Transfer transfer_for(const json& document, const fs::path& here) {
  auto authorities = document.value("authorities", std::string());
  if (authorities.empty() && fs::exists(here / "ca.pem"))
    authorities = core::read_file(here / "ca.pem");
  return stager::Transfer(std::move(authorities));
}

void fetch(const json& document, const fs::path& here, const fs::path& folder) {
  auto transfer = transfer_for(document, here);
  for (const char* each : {"agent", "stager", "ca.pem"})
    if (fs::exists(here / each)) bring(here / each, folder / each);
  // An address may be of any server, not only of the one that has a CA of its own.
  auto authorities = document.value("authorities", std::string());
  if (fs::exists(here / "ca.pem")) authorities += "\n" + core::read_file(here / "ca.pem");
  stager::fetch(document, transfer, stager::SourceReader(std::move(authorities)));
  if (!document.contains("checkpoint")) return;
  const auto restored =
      stager::restore_checkpoint(document.at("checkpoint"), folder / marks_file, transfer);
  if (!restored.empty()) leave({{"checkpoint", restored}});
}

void collect(const json& document, const fs::path& here, int exit_code) {
  auto transfer = transfer_for(document, here);
  bool is_complete = false;
  std::exception_ptr error;
  try {
    is_complete = stager::collect(document, exit_code, transfer);
  } catch (...) {
    error = std::current_exception();
  }
  // Of a step with another exit code, it has been saved before.
  if (exit_code == 0 && !is_complete && document.contains("checkpoint"))
    stager::CheckpointSaver(document.at("checkpoint"), here / marks_file, transfer).save(true);
  if (error) std::rethrow_exception(error);
}

/// Uploads the checkpoint: once, or until the process is killed.
void save(const std::function<json()>& read_document, const fs::path& here, bool once) {
  const auto document = read_document();
  auto transfer = transfer_for(document, here);
  const auto checkpoint = [&] { return read_document().at("checkpoint"); };
  if (!once) stager::keep_checkpoint(checkpoint, here / marks_file, transfer);
  stager::CheckpointSaver(document.at("checkpoint"), here / marks_file, transfer).save(true);
}

}  // namespace

int main(int count, char** arguments) {
  if (count < 3) return 125;
  OPENSSL_init_crypto(OPENSSL_INIT_NO_LOAD_CONFIG, nullptr);
  signal(SIGPIPE, SIG_IGN);
  umask(0);  // Other users in the pod read it.
  const std::string_view task = arguments[1];
  const bool saves = task == "keep" || task == "save";
  if (!saves && count != 4) return 125;
  const auto read_document = [&] { return core::parse_json(core::read_file(arguments[2])); };
  const char* what = task == "fetch" ? "not_fetched" : "not_collected";
  try {
    const auto here = fs::read_symlink("/proc/self/exe").parent_path();
    if (saves)
      save(read_document, here, task == "save");
    else if (task == "fetch")
      fetch(read_document(), here, arguments[3]);
    else
      collect(read_document(), here, std::atoi(arguments[3]));
    return 0;
  } catch (const stager::TransferError& error) {
    if (!saves) tell(what, error.what(), error.passes());
    if (saves) std::fprintf(stderr, "pipe: ${checkpoint} was not sent: %s\n", error.what());
  } catch (const std::exception& error) {
    if (!saves) tell(what, error.what(), false);
    if (saves) std::fprintf(stderr, "pipe: ${checkpoint} was not sent: %s\n", error.what());
  }
  return 1;
}
