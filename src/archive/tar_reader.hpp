/// @file
/// Reads a tar that arrives in pieces: ustar with the extensions of POSIX (pax) and GNU.
/// This reader is our own because libarchive pulls its input, while these bytes are pushed by the
/// event loop; because libarchive converts names by the locale (in `C` it loses those that are not
/// ASCII) and takes an archive that was cut between two entries for a whole one; and because the
/// same code has to be in the static stager.
#pragma once

#include <cstdint>
#include <limits>
#include <map>
#include <string>
#include <string_view>

#include "core/error.hpp"

namespace pipeline::archive {

/// An archive is no tar, is larger than its limits, or holds what may not be unpacked.
class ArchiveError : public core::EnvironmentError {
 public:
  using core::EnvironmentError::EnvironmentError;
};

/// Throws the ArchiveError of what this reader or the extraction does not take.
[[noreturn]] inline void refuse(const std::string& why) {
  throw ArchiveError("cannot unpack what was sent: " + why);
}

/// What an archive may be at most.
struct TarLimits {
  std::uint64_t bytes = std::numeric_limits<std::uint64_t>::max();  ///< Content of all files.
  std::uint64_t entries = 10'000'000;                               ///< Headers of any kind.
};

/// Memory is bounded: one block, and one name or record of at most 1 MiB.
class TarReader {
 public:
  struct Entry {
    char type = '0';  ///< As in the header: `0` and `7` a file, `1` a hard link, `2` a symbolic
                      ///< link, `5` a folder, others.
    std::string name, linked;
    unsigned mode = 0;
    std::uint64_t size = 0;
  };
  class Sink {
   public:
    virtual ~Sink() = default;
    virtual void begin(const Entry& entry) = 0;
    virtual void content(std::string_view bytes) = 0;
    virtual void end() = 0;
  };

  TarReader(Sink& sink, TarLimits limits) : sink_(sink), limits_(limits) {}
  /// Throws ArchiveError, and what the sink throws.
  void feed(std::string_view bytes);
  /// The stream has ended. Throws ArchiveError if the archive has not.
  void finish() const;

 private:
  void begin_entry();
  void end_body();
  void read_records(std::string_view text);

  Sink& sink_;
  const TarLimits limits_;
  std::uint64_t bytes_ = 0, entries_ = 0;  ///< Read so far, as in the limits.
  std::string header_;                     ///< Up to one block.
  std::uint64_t left_ = 0, padding_ = 0;   ///< Of the entry's content.
  char kind_ =
      0;  ///< Of the content: a type of entry that describes the next one, or 0 for a file's.
  std::string text_;  ///< Content of such an entry.
  std::map<std::string, std::string, std::less<>>
      own_;  ///< What those say of the next entry: path, linkpath, size.
  std::uint64_t after_end_ = 0;
  bool ended_ = false;
};

}  // namespace pipeline::archive
