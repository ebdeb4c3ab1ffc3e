/// @file
/// A tar that arrives in pieces, unpacked on the way: what an engine sends of a container's files.
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/file.hpp"

namespace pipeline::docker {

/// Reads ustar with the extensions of POSIX (pax) and GNU. Nothing is ever written outside of the
/// target, whatever the tar says: names are checked, and links come last. Throws EnvironmentError
/// for what is no tar, for names that leave the target, for devices and pipes, and for a full disk.
class Unpacker {
 public:
  /// @param target an empty folder, which the first component of each name in the tar stands for
  explicit Unpacker(std::filesystem::path target) : target_(std::move(target)) {}
  void feed(std::string_view bytes);
  /// The tar has ended: makes the links. Throws if it was cut short.
  void finish();

 private:
  void begin_entry();
  void end_body();
  void read_records(std::string_view text);
  void make(char type, const std::string& name, const std::string& linked, unsigned mode);
  std::filesystem::path place_of(const std::string& name) const;

  std::filesystem::path target_;
  std::string header_;                    ///< Up to one block.
  std::uint64_t left_ = 0, padding_ = 0;  ///< Of the entry's content.
  char kind_ =
      0;  ///< Of the content: a type of entry that describes the next one, or 0 for a file's.
  std::string text_;  ///< Content of such an entry.
  std::map<std::string, std::string>
      own_;  ///< What those say of the next entry: path, linkpath, size.
  core::Descriptor file_;
  std::string file_name_;
  std::vector<std::pair<std::filesystem::path, std::string>> links_;
  bool ended_ = false;
};

}  // namespace pipeline::docker
