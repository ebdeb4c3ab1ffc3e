/// @file
/// Unpacks a tar while it arrives: files that an engine sends from a container, or a folder from a
/// bucket. No other code unpacks archives.
#pragma once

#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "core/file.hpp"
#include "file_tree/tar_reader.hpp"
#include "file_tree/tree.hpp"

namespace pipeline::file_tree {

/// Whatever the tar contains, nothing is written outside of the target, and no link in it leads
/// outside: every path is opened below the target without following links, existing files are not
/// opened or replaced, and link targets are checked. After a failure, the unpacked files remain and
/// the caller discards the target. Holds the target, one folder and one file open, at any depth of
/// folders.
class Unpacker final : private TarReader::Sink {
 public:
  /// Throws EnvironmentError if the target cannot be opened.
  /// @param target an empty folder; the first component of each name in the tar stands for it
  /// @param name the absolute path that the folder had where the tar was made; empty: not known
  explicit Unpacker(std::filesystem::path target, TarLimits limits = {},
                    const std::filesystem::path& name = {});
  /// Unpacks the next bytes. Throws ArchiveError for input that is not a tar, exceeds the limits or
  /// must not be unpacked, and EnvironmentError for failures of the disk.
  void feed(std::string_view bytes) { reader_.feed(bytes); }
  /// Ends the stream. Throws as feed() does, also if the tar was truncated.
  void finish();

 private:
  void begin(const TarReader::Entry& entry) override;
  void content(std::string_view bytes) override;
  void end() override { file_ = core::Descriptor(); }

  int parent_of(const std::string& path);
  void make_folder(const std::string& path, unsigned mode);
  void make_file(const std::string& path, unsigned mode);
  void make_link(const std::string& path, const std::string& linked);
  void make_hard_link(const std::string& path, const std::string& name);

  const std::filesystem::path target_;
  FolderNames names_;
  TarReader reader_;
  core::Descriptor root_;
  core::Descriptor parent_;  ///< The folder of the last entry.
  std::string parent_path_;  ///< Path of `parent_` below the target.
  core::Descriptor file_;    ///< The file whose content is arriving.
  std::string file_name_;    ///< Path of `file_` below the target.
  /// Links that can be checked only when the whole folder is unpacked.
  std::vector<std::string> winding_links_;
};

}  // namespace pipeline::file_tree
