/// @file
/// The folder that a step keeps until it succeeds, for a pod that shares no files with the driver.
/// The folder is sent to one of three slots, each a tar in parts, while the others stay unchanged.
/// Then a small object, the head, is set to name the slot: the head always names a complete slot,
/// which is restored in the next pod.
#pragma once

#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <utility>

#include <nlohmann/json.hpp>

#include "stager/transfer.hpp"

namespace pipeline::stager {

/// Downloads the slot that was sent last to the empty folder of `{"to": PATH, "head": URL, "slots":
/// {NAME: PARTS}}`, where PARTS are as part_urls() reads them. If the slot is damaged or missing,
/// the folder stays empty.
/// Throws TransferError if the server does not answer, EnvironmentError.
/// @param marks file in which the state of the folder is recorded, for CheckpointSaver
/// @return the end of a sentence about the folder for the step's log, `has the files ...` or `is
/// empty, ...`; an empty text if nothing was ever sent
std::string restore_checkpoint(const nlohmann::json& document, const std::filesystem::path& marks,
                               Transfer& transfer);

/// Whether processes may write to the folder.
enum class FolderUse { at_rest, in_use };

/// Sends the folder of `{"path": PATH, "note": PATH, "copy": PATH, "seen": URL, "head": URL,
/// "slots": [{"name", PARTS}, ...]}`, with `seen` to read the head and `head` to write it. `note`
/// is a file and `copy` a folder in a place that the step does not use.
class CheckpointSaver {
 public:
  /// @param document outlives this object
  /// @param marks file that restore_checkpoint() wrote
  CheckpointSaver(const nlohmann::json& document, const std::filesystem::path& marks,
                  Transfer& transfer);

  /// Sends the folder if it has changed since it was sent or restored; returns false otherwise.
  /// Throws TransferError, EnvironmentError.
  /// @param use `in_use`: the folder is copied first, in a moment without changes
  bool save(FolderUse use);

 private:
  std::optional<std::string> copy_at_rest();
  void send(const std::filesystem::path& folder, std::pair<std::size_t, std::size_t> slots);

  const nlohmann::json& document_;
  const std::filesystem::path folder_, note_, copy_;
  std::string sent_;  ///< Marks of the folder as it was last sent.
  Transfer& transfer_;
};

/// Sends the folder whenever it has changed, until the process is killed, for at most a twentieth
/// of the time. Reports errors to standard error.
/// @param read_document returns the current document, which may have newer signatures
[[noreturn]] void keep_checkpoint(const std::function<nlohmann::json()>& read_document,
                                  const std::filesystem::path& marks, Transfer& transfer);

}  // namespace pipeline::stager
