/// @file
/// Reads a tar that arrives in pieces: ustar with the extensions of POSIX (pax) and GNU. libarchive
/// is not used, for three reasons: it pulls its input, while the event loop pushes these bytes; it
/// converts names by the locale (in `C` it loses those that are not ASCII) and accepts an archive
/// that was truncated between two entries; and the static stager needs the same code.
#pragma once

#include <cstdint>
#include <limits>
#include <map>
#include <string>
#include <string_view>

#include "core/error.hpp"

namespace pipeline::file_tree {

/// The input is not a tar, exceeds its limits, or holds entries that must not be unpacked.
class ArchiveError : public core::EnvironmentError {
 public:
  using core::EnvironmentError::EnvironmentError;
};

/// Throws ArchiveError, whose message has the reason.
[[noreturn]] inline void refuse(const std::string& reason) {
  throw ArchiveError("cannot unpack the archive: " + reason);
}

/// Bounds of an archive, and how exact its form has to be.
struct TarLimits {
  std::uint64_t bytes = std::numeric_limits<std::uint64_t>::max();  ///< Total content of all files.
  std::uint64_t entries = 10'000'000;  ///< Number of headers of any kind.
  /// True for an archive that `pipe` has written: the bytes that fill its blocks must be zeros, and
  /// its end must be that of tar_end(). Nothing else would notice a damaged byte there.
  bool requires_exact_form = false;
};

/// Reads an archive, and passes its entries to a sink. The reader holds at most one block, and one
/// name or record of at most 1 MiB.
class TarReader {
 public:
  /// The header of an entry, with what earlier entries have described.
  struct Entry {
    char type = '0';  ///< Type flag of the header: `0` and `7` a file, `1` a hard link, `2` a
                      ///< symbolic link, `5` a folder; others exist.
    std::string name;
    std::string linked;  ///< Target of a link.
    unsigned mode = 0;
    std::uint64_t size = 0;  ///< Bytes of the content.
    std::int64_t time = 0;   ///< Seconds since 1970; 0 for a time that cannot be read.
  };
  /// Receives each entry: begin(), its content in any number of pieces, end(). May throw.
  class Sink {
   public:
    virtual ~Sink() = default;
    virtual void begin(const Entry& entry) = 0;
    virtual void content(std::string_view bytes) = 0;
    virtual void end() = 0;
  };

  TarReader(Sink& sink, TarLimits limits) : sink_(sink), limits_(limits) {}
  /// Reads the next bytes. Throws ArchiveError, and exceptions of the sink.
  void feed(std::string_view bytes);
  /// Ends the stream. Throws ArchiveError if the archive is incomplete.
  void finish() const;

 private:
  void begin_entry();
  void end_body();
  void check_fill(std::string_view bytes) const;
  void read_records(std::string_view text);

  Sink& sink_;
  const TarLimits limits_;
  std::uint64_t bytes_ = 0, entries_ = 0;  ///< Numbers read so far, which the limits bound.
  std::string header_;                     ///< The current header, up to one block.
  std::uint64_t left_ = 0;                 ///< Bytes that remain of the entry's content.
  std::uint64_t padding_ = 0;              ///< Bytes that remain of the padding after the content.
  char kind_ = 0;     ///< Type of the current entry if its content describes the next entry, as a
                      ///< long name does; 0 for any other entry, whose content is for the sink.
  std::string text_;  ///< Content of the current entry if it describes the next one.
  /// Attributes of the next entry that earlier entries have described: path, linkpath, size, mtime.
  std::map<std::string, std::string, std::less<>> next_attributes_;
  std::uint64_t after_end_ = 0;  ///< Bytes after the first block of the archive's end.
  bool ended_ = false;           ///< True after the first block of the archive's end.
};

}  // namespace pipeline::file_tree
