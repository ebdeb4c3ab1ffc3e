#include "orchestrators/docker/file_copy.hpp"

#include <algorithm>
#include <array>
#include <string_view>

#include "async/retry_policy.hpp"
#include "async/sleep.hpp"
#include "core/file.hpp"
#include "core/log.hpp"
#include "docker/context.hpp"
#include "file_tree/unpack.hpp"
#include "net/curl.hpp"
#include "orchestrators/docker/container_spec.hpp"
#include "orchestrators/docker/init_program.hpp"

namespace pipeline::orchestrators::docker_engine {
namespace {

using docker::ContextFile;
namespace fs = std::filesystem;

constexpr unsigned for_reading = 0555, for_all = 0777;

void add_folder(std::string path, unsigned mode, std::vector<ContextFile>& files) {
  ContextFile folder;
  folder.path = std::move(path);
  folder.mode = mode;
  folder.kind = ContextFile::Kind::directory;
  files.push_back(std::move(folder));
}

/// Adds a file or folder that every user may read and none may write.
void add(const std::string& path, const fs::path& source, std::vector<ContextFile>& files) {
  const auto status = fs::status(source);
  if (!fs::is_directory(status)) {
    ContextFile file;
    file.path = path;
    file.source = source;
    file.bytes = fs::file_size(source);
    file.mode = (status.permissions() & fs::perms::owner_exec) != fs::perms::none ? 0555 : 0444;
    files.push_back(std::move(file));
    return;
  }
  add_folder(path, for_reading, files);
  for (auto& file : docker::folder_context(source, "", {})) {
    file.path = path + "/" + file.path;
    if (file.kind != ContextFile::Kind::symlink)
      file.mode = file.kind == ContextFile::Kind::directory || (file.mode & 0100) ? 0555 : 0444;
    files.push_back(std::move(file));
  }
}

/// Adds a folder with its content that every user may read and write.
void add_writable(const std::string& path, const fs::path& source,
                  std::vector<ContextFile>& files) {
  add_folder(path, for_all, files);
  for (auto& file : docker::folder_context(source, "", {})) {
    file.path = path + "/" + file.path;
    if (file.kind != ContextFile::Kind::symlink)
      file.mode = file.kind == ContextFile::Kind::directory || (file.mode & 0100) ? 0777 : 0666;
    files.push_back(std::move(file));
  }
}

std::string name_in(const std::string& folder, const std::string& path) {
  return path.substr(folder.size() + 1);
}

}  // namespace

bool is_elsewhere(const docker::EngineError& error, const Attempt& attempt) {
  const std::string_view text = error.what();
  // Docker Engine; Podman; Docker Desktop for folders that are not shared with its virtual machine.
  constexpr std::array texts{"bind source path does not exist", "no such file or directory",
                             "ounts denied"};
  if (std::none_of(texts.begin(), texts.end(),
                   [&](const char* part) { return text.find(part) != text.npos; }))
    return false;
  std::vector<fs::path> own{attempt.code, attempt.outputs, attempt.scratch};
  for (const auto& input : attempt.inputs) own.push_back(input.path);
  std::error_code ignored;
  return std::any_of(own.begin(), own.end(), [&](const fs::path& path) {
    return text.find(path.string()) != text.npos && fs::exists(path, ignored);
  });
}

async::Task<bool> has_files_of(docker::EngineApi& engine, const Attempt& attempt,
                               std::string container) {
  const auto marker = ".pipe-marker-" + container.substr(0, 12);
  const auto file = attempt.scratch / marker;
  core::write_file_atomically(file, "");
  std::exception_ptr error;
  bool seen = false;
  try {
    seen = co_await engine.has_file(container, containers::container_scratch + "/" + marker);
  } catch (...) {
    error = std::current_exception();
  }
  core::remove_tree(file);
  if (error) std::rethrow_exception(error);
  co_return seen;
}

async::Task<> copy_in(docker::EngineApi& engine, const Attempt& attempt,
                      const std::string& container, fs::path init) {
  const auto& layout = containers::container_layout();
  std::vector<ContextFile> files;
  add(name_in(containers::container_folder, layout.code), attempt.code, files);
  add_folder(name_in(containers::container_folder, layout.inputs), for_reading, files);
  for (const auto& input : attempt.inputs)
    add(name_in(containers::container_folder, path_of(input, layout)), input.path, files);
  if (!init.empty()) add(name_in(containers::container_folder, init_path), init, files);
  // No other container uses this volume, so every user may write.
  add_folder(name_in(containers::container_folder, layout.outputs), for_all, files);
  add_folder(name_in(containers::container_folder, containers::container_scratch), for_all, files);
  if (!attempt.checkpoint.empty())
    add_writable(name_in(containers::container_folder, layout.checkpoint), attempt.checkpoint,
                 files);
  const std::function<net::BodySource()> tar = [&files] { return file_tree::tar_stream(files); };
  async::Backoff backoff(engine.limits().retries);
  for (;;) {
    try {
      co_await engine.put_archive(container, containers::container_folder, tar, attempt.io.cancel);
      co_return;
    } catch (const docker::EngineError& error) {
      // An engine that is shutting down has unmounted the folder, and does not find it.
      const bool is_unmounted = error.status() == 404 && !error.is_no_such_container();
      if (!is_unmounted || backoff.exhausted()) throw;
      core::log::info(std::string("engine: ") + error.what() + "; retried");
    }
    co_await async::sleep(backoff.next(), &attempt.io.cancel);
  }
}

namespace {

/// A folder of the container, and the empty folder of this machine that its content is copied to.
struct Copied {
  std::string from;
  fs::path to;
};

async::Task<> copy_out_once(docker::EngineApi& engine, const std::string& container,
                            const Copied& folder, core::CancelSource& cancel) {
  file_tree::Unpacker unpacker(folder.to, {}, folder.from);
  bool is_missing = false;
  const std::function<void(std::string_view)> on_bytes = [&unpacker](std::string_view bytes) {
    unpacker.feed(bytes);
  };
  try {
    co_await engine.get_archive(container, folder.from, on_bytes, cancel);
  } catch (const docker::EngineError& error) {
    if (error.status() != 404) throw;
    is_missing = true;
  }
  if (is_missing) {
    // An engine that is shutting down finds nothing that is in the unmounted volume.
    const bool has_inputs =
        co_await engine.has_file(container, containers::container_layout().inputs);
    const bool has_folder = co_await engine.has_file(container, folder.from);
    if (!has_inputs || has_folder)
      throw net::TransportError(CURLE_RECV_ERROR,
                                "the container's files were not found for a while");
    co_return;  // The step has removed the folder, so it has written nothing.
  }
  unpacker.finish();
}

/// Copies a folder, and retries if the engine was restarted meanwhile. An engine that is shutting
/// down unmounts the volume, perhaps while it sends the files, and then sends only a part of them
/// without an error. So the copy counts only if afterwards the volume is still mounted, and the
/// engine still has the container's events: a restarted engine has not.
async::Task<> copy_folder(docker::EngineApi& engine, const std::string& container,
                          const Copied& folder, core::CancelSource& cancel) {
  async::Backoff backoff(engine.limits().retries);
  for (;;) {
    try {
      const bool has_events = co_await engine.saw_own_end(container, &cancel);
      co_await copy_out_once(engine, container, folder, cancel);
      const bool is_mounted =
          co_await engine.has_file(container, containers::container_layout().inputs);
      const bool is_same = !has_events || co_await engine.saw_own_end(container, &cancel);
      if (is_mounted && is_same) co_return;
      throw net::TransportError(CURLE_RECV_ERROR, "it stopped while it sent a container's files");
    } catch (const net::TransportError& error) {
      if (cancel.level() != core::StopLevel::none || backoff.exhausted()) throw;
      core::log::info(std::string("engine: ") + error.what() + "; retried");
    }
    core::remove_tree(folder.to);
    core::make_folders(folder.to);
    co_await async::sleep(backoff.next(), &cancel);
  }
}

/// Replaces the checkpoint by the container's. The container's is first unpacked in another folder,
/// so that the current checkpoint stays if anything fails. For a step with nodes, only the first
/// node's checkpoint is kept.
async::Task<> copy_checkpoint(docker::EngineApi& engine, const Attempt& attempt,
                              const std::string& container, core::CancelSource& cancel) {
  if (attempt.checkpoint_key.empty() || (attempt.process && attempt.process->node > 0)) co_return;
  const Copied folder{containers::container_layout().checkpoint,
                      attempt.scratch / ".pipe-checkpoint"};
  core::remove_tree(folder.to);
  core::make_folders(folder.to);
  co_await copy_folder(engine, container, folder, cancel);
  attempt.io.replace_checkpoint(folder.to);
}

}  // namespace

async::Task<> copy_out(docker::EngineApi& engine, const Attempt& attempt,
                       const std::string& container) {
  const Copied folder{containers::container_layout().outputs, attempt.outputs};
  co_await copy_folder(engine, container, folder, attempt.io.cancel);
}

async::Task<> copy_rest(docker::EngineApi& engine, const Attempt& attempt,
                        const std::string& container, bool outputs) {
  core::CancelSource hurry;  // The attempt itself may have been stopped.
  const core::CancelSource::Listener listener(attempt.io.cancel, [&](core::StopLevel level) {
    if (level == core::StopLevel::immediate) hurry.stop(level);
  });
  const Copied folder{containers::container_layout().outputs, attempt.outputs};
  try {
    co_await copy_checkpoint(engine, attempt, container, hurry);
    if (outputs) co_await copy_folder(engine, container, folder, hurry);
  } catch (const core::EnvironmentError& error) {
    const std::string text = "pipe: the attempt's files were not copied to this machine: ";
    attempt.io.log.write(Stream::err, text + error.what() + "\n");
  }
}

}  // namespace pipeline::orchestrators::docker_engine
