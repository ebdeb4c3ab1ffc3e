/// @file
/// Receives content into a file: by several connections at a time if the server has ranges, and
/// continued after an interruption.
#pragma once

#include <optional>
#include <string>

#include "fetch/part_file.hpp"
#include "fetch/sources.hpp"

namespace pipeline::fetch {

/// The expected content.
struct Expected {
  std::optional<std::uint64_t> size;
  /// The content's digest is known and will be compared. Otherwise all parts must have the ETag or
  /// the date of `state`, so that no two contents are mixed.
  bool is_verified = false;
  ContentState state = {};
};

class DataTransfer {
 public:
  /// All arguments must outlive this object. `into` must be locked and loaded.
  DataTransfer(Sources& sources, const DataAddress& from, const Expected& expected, PartFile& into,
               core::CancelSource& stop)
      : sources_(sources), from_(from), expected_(expected), into_(into), stop_(stop) {}

  /// Receives all missing bytes. Throws EnvironmentError; received bytes stay for a later call,
  /// unless the content is not the expected one.
  async::Task<> run();

 private:
  /// The result of a request.
  struct Outcome {
    bool is_done = false;
    std::string problem;                        ///< Reason of a failure that may be retried.
    std::optional<std::chrono::seconds> pause;  ///< The server wants this pause before a retry.
  };
  async::Task<Outcome> begin();
  async::Task<Outcome> read_part(std::size_t part, core::CancelSource& stop);
  async::Task<> read_parts();
  async::Task<> read_free_parts(core::CancelSource& stop);
  async::Task<Outcome> send(Reading& reading, core::CancelSource& stop,
                            const std::function<Outcome(const net::Response&)>& judge);
  void accept(const net::Response& response, std::optional<std::uint64_t> size);
  [[noreturn]] void throw_changed(const std::string& how) const;
  core::EnvironmentError stopped() const;

  Sources& sources_;
  const DataAddress& from_;
  const Expected& expected_;
  PartFile& into_;
  core::CancelSource& stop_;
  bool has_ranges_ = true;  ///< The server has not refused a range yet.
};

}  // namespace pipeline::fetch
