// The artifact store's notes of artifacts that are in a remote store:
// `artifacts/ab/cdef....elsewhere`.
#include <unistd.h>
#include <nlohmann/json.hpp>

#include "core/bounded_json.hpp"
#include "core/file.hpp"
#include "core/log.hpp"
#include "store/artifact_store.hpp"

namespace pipeline::store {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view suffix = ".elsewhere";
constexpr std::size_t max_note = 64 * 1024;

fs::path note_of(fs::path artifact) { return artifact += suffix; }

}  // namespace

void ArtifactStore::note_elsewhere(const core::Digest& digest, const model::Elsewhere& place) {
  const nlohmann::json text{{"is_directory", place.is_directory},
                            {"is_executable", place.is_executable},
                            {"bytes", place.bytes},
                            {"store", place.store}};
  const auto note = note_of(path(digest));
  core::make_folders(note.parent_path());
  core::write_file_atomically(note, text.dump());
}

std::optional<model::Elsewhere> ArtifactStore::elsewhere(const core::Digest& digest) const {
  if (has(digest)) return std::nullopt;
  const auto note = note_of(path(digest));
  const auto text = core::read_untrusted_file(note, max_note);
  if (!text) return std::nullopt;
  try {
    const auto read = core::parse_json(*text);
    return model::Elsewhere{.is_directory = read.at("is_directory").get<bool>(),
                            .is_executable = read.at("is_executable").get<bool>(),
                            .bytes = core::integer_of<std::uint64_t>(read.at("bytes")),
                            .store = read.at("store").get<std::string>()};
  } catch (const std::exception& error) {
    core::log::info(note.string() + ": " + error.what());
    return std::nullopt;
  }
}

void ArtifactStore::forget_elsewhere(const core::Digest& digest) {
  ::unlink(note_of(path(digest)).c_str());
}

bool ArtifactStore::is_known(const core::Digest& digest) const {
  return has(digest) || elsewhere(digest);
}

bool ArtifactStore::is_kept(const core::Digest& digest) {
  return looks_whole(digest) || elsewhere(digest);
}

void ArtifactStore::remove_notes(const std::function<bool(const core::Digest&)>& is_used) {
  for (const auto& folder : core::entries_of(folder_)) {
    const auto first_digits = folder.filename().string();
    if (first_digits.size() != 2) continue;
    for (const auto& entry : core::entries_of(folder)) {
      const auto name = entry.filename().string();
      if (!name.ends_with(suffix)) continue;
      try {
        const auto digest =
            core::Digest::from_hex(first_digits + name.substr(0, name.size() - suffix.size()));
        if (!is_used(digest)) ::unlink(entry.c_str());
      } catch (const std::invalid_argument&) {
        // The file is not one of the store's notes, and is left alone.
      }
    }
    ::rmdir(folder.c_str());  // Succeeds only for an empty folder.
  }
}

}  // namespace pipeline::store
