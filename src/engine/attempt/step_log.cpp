#include "engine/attempt/step_log.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>

#include "core/error.hpp"
#include "model/structured_line.hpp"
#include "orchestrators/preflight.hpp"

namespace pipeline::engine {
namespace {
/// Bytes. Longer lines are passed on in pieces, so that memory is bounded.
constexpr std::size_t max_line_size = 64 * 1024;
constexpr std::size_t max_tail_lines = 50;

Stream other(Stream stream) { return stream == Stream::out ? Stream::err : Stream::out; }
}  // namespace

std::vector<std::string> with_log_tail(const std::vector<std::string>& details,
                                       const std::vector<std::string>& tail) {
  std::vector<std::string> all;
  for (const auto& detail : details) {
    const auto is_detail = [&](const std::string& line) {
      return line == detail || line == "pipe: " + detail;
    };
    if (std::ranges::none_of(tail, is_detail)) all.push_back(detail);
  }
  all.insert(all.end(), tail.begin(), tail.end());
  return all;
}

StepLogWriter::StepLogWriter(const std::filesystem::path& file, std::vector<std::string> secrets,
                             std::function<void(Stream, std::string)> on_line,
                             std::function<void(std::string)> on_row)
    : path_(file),
      masks_{SecretMask(secrets), SecretMask(secrets)},
      on_line_(std::move(on_line)),
      on_row_(std::move(on_row)) {
  core::make_folders(file.parent_path());
  if (::unlink(file.c_str()) != 0 && errno != ENOENT)
    throw core::system_error("cannot write the log " + file.string(), errno);
}

void StepLogWriter::write(Stream stream, std::string_view bytes) {
  put(stream, masks_[stream == Stream::err].feed(bytes));
}

/// Writes masked bytes to the file, and passes on the lines that they complete.
void StepLogWriter::put(Stream stream, std::string_view masked) {
  if (masked.empty()) return;
  write_file(stream, masked);
  auto& line = lines_[stream == Stream::err];
  while (!masked.empty()) {
    const auto end = masked.find('\n');
    line += masked.substr(0, end);
    if (end == std::string_view::npos && line.size() < max_line_size) break;
    put_line(stream, std::exchange(line, {}));
    if (end == std::string_view::npos) break;
    masked.remove_prefix(end + 1);
  }
  show_row(line);
}

void StepLogWriter::write_file(Stream stream, std::string_view masked) {
  if (!open_ || *open_ == stream) {
    append(stream, masked);
    if (!open_ && !waiting_.empty()) append(other(stream), std::exchange(waiting_, {}));
    return;
  }
  waiting_ += masked;
  if (waiting_.find('\n') != waiting_.npos || waiting_.size() >= max_line_size) cut_open_line();
}

void StepLogWriter::cut_open_line() {
  const auto cut = *open_;
  append(cut, "\n");
  was_cut_[cut == Stream::err] = true;
  append(other(cut), std::exchange(waiting_, {}));
}

void StepLogWriter::append(Stream stream, std::string_view bytes) {
  if (std::exchange(was_cut_[stream == Stream::err], false) && bytes.starts_with('\n'))
    bytes.remove_prefix(1);
  const int error = file_ || open() ? core::write_all(file_.get(), bytes) : errno;
  if (!write_error_) write_error_ = error;
  open_ = bytes.empty() || bytes.ends_with('\n') ? std::nullopt : std::optional(stream);
}

void StepLogWriter::show_row(std::string& line) {
  const auto last = line.ends_with('\r') ? line.size() - 1 : line.size();  // A `\n` may follow.
  if (const auto overwritten = last ? line.rfind('\r', last - 1) : std::string::npos;
      overwritten != std::string::npos)
    line.erase(0, overwritten + 1);
  else if (last == line.size())
    return;
  auto row = line.substr(0, line.find('\r'));
  if (on_row_ && !row.empty()) on_row_(std::move(row));
}

bool StepLogWriter::open() {
  constexpr mode_t mode = 0666;  // The process's umask takes bits away.
  file_ = core::Descriptor(::open(path_.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, mode));
  return static_cast<bool>(file_);
}

/// Passes on a whole line, and adds it to the tail.
void StepLogWriter::put_line(Stream stream, std::string line) {
  if (line.ends_with('\r')) line.pop_back();
  if (const auto overwritten = line.rfind('\r'); overwritten != std::string::npos)
    line.erase(0, overwritten + 1);  // Keeps the last state of a progress bar.
  // Lines with metrics do not explain a failure, and metrics are stored elsewhere. A line about the
  // check of the GPUs before the command is left out too: if the check fails, the failure names it.
  const bool is_check = tail_.empty() && line.starts_with(orchestrators::preflight_mark);
  if (!is_check && !model::parse_metric(line)) tail_.push_back(model::shown_line(line));
  if (tail_.size() > max_tail_lines) tail_.pop_front();
  on_line_(stream, std::move(line));
}

void StepLogWriter::finish() {
  for (const auto stream : {Stream::out, Stream::err}) {
    put(stream, masks_[stream == Stream::err].finish());
    if (auto& line = lines_[stream == Stream::err]; !line.empty())
      put_line(stream, std::exchange(line, {}));
  }
  if (!waiting_.empty()) cut_open_line();
  file_ = core::Descriptor();
  if (write_error_)
    throw core::system_error("cannot write the log " + path_.string(), write_error_);
}

std::string StepLogWriter::tail_text() const {
  constexpr std::size_t max_beginning = 2048;
  std::string text;
  for (const auto& line : tail_) (text += std::string_view(line).substr(0, max_beginning)) += '\n';
  return text;
}

}  // namespace pipeline::engine
