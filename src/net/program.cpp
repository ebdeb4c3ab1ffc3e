#include "net/program.hpp"

#include <array>
#include <cerrno>
#include <csignal>

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>
#include <boost/asio/readable_pipe.hpp>

#include "async/timeout.hpp"
#include "core/error.hpp"
#include "core/file.hpp"
#include "net/child.hpp"

namespace pipeline::net {
namespace {

constexpr std::size_t max_output = 16 << 20, max_errors = 1 << 20;

/// Opens an anonymous file in memory. Unlike a pipe, such a file causes no SIGPIPE if the program
/// does not read its stdin, and does not block a program whose stderr is not read.
core::Descriptor memory_file(const std::string& text = {}) {
  core::Descriptor file(memfd_create("program", MFD_CLOEXEC));
  if (!file || write(file.get(), text.data(), text.size()) != static_cast<ssize_t>(text.size()) ||
      lseek(file.get(), 0, SEEK_SET) != 0)
    throw core::system_error("it cannot be given its input", errno);
  return file;
}

std::string content_of(const core::Descriptor& file) {
  std::string text(max_errors, '\0');
  const auto count = pread(file.get(), text.data(), text.size(), 0);
  text.resize(count > 0 ? static_cast<std::size_t>(count) : 0);
  return text;
}

/// Reads to the end, or to the maximum size of an answer.
async::Task<std::string> read_all(asio::readable_pipe& pipe) {
  std::string text;
  std::array<char, 16384> piece{};
  while (text.size() < max_output) {
    boost::system::error_code end;
    const auto count =
        co_await pipe.async_read_some(asio::buffer(piece, max_output - text.size()),
                                      asio::redirect_error(asio::use_awaitable, end));
    if (end) break;
    text.append(piece.data(), count);
  }
  co_return text;
}

}  // namespace

async::Task<ProgramAnswer> run_program(ProgramCall call) {
  const auto executor = co_await asio::this_coro::executor;
  ProgramAnswer answer;
  const auto input = memory_file(call.input), errors = memory_file();
  std::array<int, 2> ends{};
  if (pipe2(ends.data(), O_CLOEXEC) != 0) throw core::system_error("it cannot be run", errno);
  asio::readable_pipe output(executor, ends[0]);
  core::Descriptor write_end(ends[1]);
  Child child(executor, {call.command, call.variables, input.get(), write_end.get(), errors.get()});
  write_end = core::Descriptor();
  async::Timeout timeout(executor, [&child, &output, &answer] {
    answer.late = true;
    child.signal(SIGKILL);
    boost::system::error_code closed;
    output.close(closed);  // Descendants of the program may hold the other end open.
  });
  timeout.start(call.timeout);
  auto text = co_await read_all(output);
  answer.output = std::move(text);
  boost::system::error_code ignored;
  output.close(ignored);  // Ends a program that writes without end.
  co_await child.ended();
  timeout.cancel();
  answer.code = child.exit_code();
  answer.errors = content_of(errors);
  co_return answer;
}

}  // namespace pipeline::net
