/// @file
/// Unpacks a tar while it arrives: what an engine sends of a container's files, what a bucket has
/// of a folder. The only code that unpacks anything.
#pragma once

#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "archive/tar_reader.hpp"
#include "core/file.hpp"

namespace pipeline::archive {

/// Nothing is written outside of the target, and no link in it leads outside, whatever the tar
/// says: every path is opened below the target without following links, nothing that exists is
/// opened or replaced, and targets of links are checked. What was unpacked before a failure stays:
/// the caller discards the target then. Holds the target, one folder and one file open, however
/// deep the folders are.
class Unpacker final : private TarReader::Sink {
 public:
  /// @param target an empty folder, which the first component of each name in the tar stands for
  /// Throws EnvironmentError if it cannot be opened.
  explicit Unpacker(std::filesystem::path target, TarLimits limits = {});
  /// Throws ArchiveError for what is no tar, exceeds the limits, or may not be unpacked;
  /// EnvironmentError for a full disk and the like.
  void feed(std::string_view bytes) { reader_.feed(bytes); }
  /// The stream has ended. Throws as feed(), also if the tar was cut short.
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
  TarReader reader_;
  core::Descriptor root_;
  core::Descriptor parent_;  ///< The folder of the last entry ...
  std::string parent_path_;  ///< ... and its path below the target.
  core::Descriptor file_;    ///< The file whose content arrives.
  std::string file_name_;
  std::vector<std::string>
      winding_links_;  ///< Those that only the whole folder shows to stay inside.
};

}  // namespace pipeline::archive
