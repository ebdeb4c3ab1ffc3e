// Transfers a step's files between its pod and the remote store (staging.hpp). Linked statically,
// so that it runs in any image. Usage:
//
//        pipe-stager fetch DOCUMENT FOLDER [CACHE BUDGET]
//                                                  downloads the inputs, to be shared by the node's
//                                                  pods in the folder CACHE of BUDGET bytes; copies
//                                                  itself and the agent beside it to FOLDER
//        pipe-stager keep DOCUMENT                 uploads the checkpoint whenever it has changed
//        pipe-stager save DOCUMENT                 uploads the checkpoint of an ended step
//        pipe-stager collect DOCUMENT EXIT_CODE    uploads the outputs
//
// The container's termination message has the reason of a failure of `fetch` and `collect`, the
// result of restoring a checkpoint, and how much of the inputs the cache had.
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <filesystem>
#include <functional>
#include <optional>
#include <string_view>

#include <fcntl.h>
#include <openssl/crypto.h>
#include <sys/stat.h>
#include <unistd.h>

#include "core/bounded_json.hpp"
#include "core/file.hpp"
#include "stager/checkpoint.hpp"
#include "stager/failure_report.hpp"
#include "stager/staging.hpp"

namespace {

using nlohmann::json;
namespace fs = std::filesystem;
using namespace pipeline;

constexpr const char* marks_file = "checkpoint";  // Beside this program; see restore_checkpoint().

void write_termination_message(const std::string& text) {
  const core::Descriptor file(::open("/dev/termination-log", O_WRONLY | O_TRUNC | O_CLOEXEC));
  if (file && ::write(file.get(), text.data(), text.size()) < 0) std::perror("pipe-stager");
}

void report_failure(const char* what, const std::string& message, bool is_transient,
                    const std::string& damaged = {}) {
  std::fprintf(stderr, "pipe-stager: %s\n", message.c_str());
  write_termination_message(stager::failure_report(what, message, is_transient, damaged));
}

void copy_program(const fs::path& from, const fs::path& to) {
  core::write_file_atomically(to, core::read_file(from));
  fs::permissions(to, fs::perms(0555));
}

stager::Transfer transfer_for(const json& document, const fs::path& own_folder) {
  auto authorities = document.value("authorities", std::string());
  if (authorities.empty() && fs::exists(own_folder / "ca.pem"))
    authorities = core::read_file(own_folder / "ca.pem");
  return stager::Transfer(std::move(authorities));
}

void fetch(json document, const fs::path& own_folder, const fs::path& folder,
           std::optional<stager::NodeCache> cache) {
  auto transfer = transfer_for(document, own_folder);
  stager::complete(document, transfer);
  for (const char* each : {"agent", "stager", "ca.pem"})
    if (fs::exists(own_folder / each)) copy_program(own_folder / each, folder / each);
  // A source may be on any server, not only on one with a CA of its own.
  auto authorities = document.value("authorities", std::string());
  if (fs::exists(own_folder / "ca.pem"))
    authorities += "\n" + core::read_file(own_folder / "ca.pem");
  stager::fetch(document, transfer, stager::SourceReader(std::move(authorities)),
                cache ? &*cache : nullptr);
  json notes = json::object();
  if (cache) {
    cache->trim();
    notes["cache"] = cache->summary();
  }
  if (document.contains("checkpoint")) {
    const auto restored =
        stager::restore_checkpoint(document.at("checkpoint"), folder / marks_file, transfer);
    if (!restored.empty()) notes["checkpoint"] = restored;
  }
  if (!notes.empty())
    write_termination_message(notes.dump(-1, ' ', true, json::error_handler_t::replace));
}

/// Returns the node's cache from the last arguments.
std::optional<stager::NodeCache> cache_of(int count, char** arguments) {
  constexpr int folder = 4, budget = 5;
  if (count <= budget) return std::nullopt;
  return std::make_optional<stager::NodeCache>(arguments[folder],
                                               std::strtoull(arguments[budget], nullptr, 10));
}

void collect(json document, const fs::path& own_folder, int exit_code) {
  auto transfer = transfer_for(document, own_folder);
  stager::complete(document, transfer);
  bool is_complete = false;
  std::exception_ptr error;
  try {
    is_complete = stager::collect(document, exit_code, transfer);
  } catch (...) {
    error = std::current_exception();
  }
  // The checkpoint of a step with another exit code has been saved before.
  if (exit_code == 0 && !is_complete && document.contains("checkpoint")) try {
      stager::CheckpointSaver(document.at("checkpoint"), own_folder / marks_file, transfer)
          .save(stager::FolderUse::at_rest);
    } catch (const std::exception& failed) {
      if (!error) throw;
      std::fprintf(stderr, "pipe: ${checkpoint} was not uploaded: %s\n", failed.what());
    }
  if (error) std::rethrow_exception(error);  // The error says why the attempt has failed.
}

/// Uploads the checkpoint whenever it has changed, until the process is killed.
void keep(const std::function<json()>& read_document, const fs::path& own_folder) {
  auto transfer = transfer_for(read_document(), own_folder);
  const auto checkpoint = [&] { return read_document().at("checkpoint"); };
  stager::keep_checkpoint(checkpoint, own_folder / marks_file, transfer);
}

/// Uploads the checkpoint of an ended step.
void save(const json& document, const fs::path& own_folder) {
  auto transfer = transfer_for(document, own_folder);
  stager::CheckpointSaver(document.at("checkpoint"), own_folder / marks_file, transfer)
      .save(stager::FolderUse::at_rest);
}

}  // namespace

int main(int count, char** arguments) {
  if (count < 3) return 125;  // Wrong arguments, as engines report a command that cannot run.
  OPENSSL_init_crypto(OPENSSL_INIT_NO_LOAD_CONFIG, nullptr);
  signal(SIGPIPE, SIG_IGN);
  umask(0);  // Other users in the pod read the files.
  const std::string_view task = arguments[1];
  const bool saves = task == "keep" || task == "save";
  if (!saves && count != 4 && count != 6) return 125;
  const auto read_document = [&] { return core::parse_json(core::read_file(arguments[2])); };
  const char* what = task == "fetch" ? "not_fetched" : "not_collected";
  try {
    const auto own_folder = fs::read_symlink("/proc/self/exe").parent_path();
    if (task == "keep")
      keep(read_document, own_folder);
    else if (task == "save")
      save(read_document(), own_folder);
    else if (task == "fetch")
      fetch(read_document(), own_folder, arguments[3], cache_of(count, arguments));
    else
      collect(read_document(), own_folder, std::atoi(arguments[3]));
    return 0;
  } catch (const stager::DamagedItem& error) {
    report_failure(what, error.what(), true, error.digest());
  } catch (const stager::TransferError& error) {
    if (!saves) report_failure(what, error.what(), error.is_transient());
    if (saves) std::fprintf(stderr, "pipe: ${checkpoint} was not uploaded: %s\n", error.what());
  } catch (const std::exception& error) {
    if (!saves) report_failure(what, error.what(), false);
    if (saves) std::fprintf(stderr, "pipe: ${checkpoint} was not uploaded: %s\n", error.what());
  }
  return 1;
}
