/// @file
/// A step's output: masked, written to the attempt's log file, and passed on line by line.
#pragma once

#include <array>
#include <deque>
#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "core/file.hpp"
#include "engine/attempt/secret_mask.hpp"
#include "orchestrators/orchestrator.hpp"

namespace pipeline::engine {

/// Returns the details of a failure, and then the last lines of the step's log. Details that are
/// among these lines, as a service's output is, are left out.
std::vector<std::string> with_log_tail(const std::vector<std::string>& details,
                                       const std::vector<std::string>& tail);

class StepLogWriter final : public orchestrators::LogSink {
 public:
  /// Creates `file` and its folder; throws EnvironmentError.
  /// @param on_line receives each whole line
  /// @param on_row  receives the last state of a line that the step rewrites, such as a progress
  /// bar; called at most once for each write()
  StepLogWriter(const std::filesystem::path& file, std::vector<std::string> secrets,
                std::function<void(Stream, std::string)> on_line,
                std::function<void(std::string)> on_row = {});
  void write(Stream stream, std::string_view bytes) override;
  /// Writes the bytes held back and closes the file. The first write error is thrown here as
  /// EnvironmentError.
  void finish();
  /// Returns the last lines of both streams, in the order of arrival, as they are shown to people.
  /// Lines that report metrics are left out.
  const std::deque<std::string>& tail() const { return tail_; }
  /// Returns the beginnings of the last lines: a message that explains a failure is not long, and
  /// the text is searched on the event loop.
  std::string tail_text() const;

 private:
  void put(Stream stream, std::string_view masked);
  void put_line(Stream stream, std::string line);
  /// Writes to the file, in which each line is of one stream. Bytes of the other stream wait until
  /// the unfinished line ends; once a whole line waits, cut_open_line() ends the unfinished one.
  void write_file(Stream stream, std::string_view masked);
  /// Ends the unfinished line of the file, and writes the bytes that wait for its end.
  void cut_open_line();
  void append(Stream stream, std::string_view bytes);
  /// Reduces an unfinished line with carriage returns to its last state, and passes the latter on.
  void show_row(std::string& line);
  /// Opens the file. Returns false, with errno set, if that fails.
  bool open();
  std::filesystem::path path_;
  /// Not a std::FILE: the C library searches a list of all open ones, and thousands may be open.
  core::Descriptor file_;
  std::array<SecretMask, 2> masks_;
  std::array<std::string, 2> lines_;  ///< Unfinished line of each stream.
  std::optional<Stream> open_;        ///< The stream whose line is unfinished in the file.
  std::string waiting_;               ///< Bytes of the other stream, none of them a whole line.
  std::array<bool, 2> was_cut_{};  ///< Set for a stream whose last line cut_open_line() has ended.
  std::function<void(Stream, std::string)> on_line_;
  std::function<void(std::string)> on_row_;
  std::deque<std::string> tail_;
  int write_error_ = 0;
};

}  // namespace pipeline::engine
