#include "fetch/transfer.hpp"

#include <algorithm>

#include "async/parallel.hpp"
#include "async/sleep.hpp"
#include "blobs/transfer_plan.hpp"
#include "core/quantity.hpp"
#include "core/text.hpp"
#include "core/transfer_advance.hpp"
#include "fetch/number.hpp"

namespace pipeline::fetch {
namespace {

/// Maximum number of connections for a file.
constexpr std::size_t max_connections = 4;
/// Bytes of the first request, which finds out the total size and whether the server has ranges.
using blobs::first_range;
constexpr async::RetryPolicy part_retries{.max_tries = 6};

std::string range_text(std::uint64_t begin, std::uint64_t end) {
  return "bytes=" + std::to_string(begin) + "-" + std::to_string(end - 1);
}

/// Returns an ETag without its quotes and the mark `W/` of a weak one: servers do not always send
/// them.
std::string_view bare(std::string_view etag) {
  if (etag.starts_with("W/")) etag.remove_prefix(2);
  return core::trimmed(etag, "\"");
}

/// Thrown by a callback: the server does not support ranges after all.
struct NoRanges {};

/// The content is not the expected one, and is discarded.
class Changed : public core::EnvironmentError {
 public:
  using core::EnvironmentError::EnvironmentError;
};

}  // namespace

core::EnvironmentError DataTransfer::stopped() const {
  return core::EnvironmentError("the download of " + without_query(from_.url) + " was stopped");
}

void DataTransfer::throw_changed(const std::string& how) const {
  throw Changed(without_query(from_.url) + " " + how,
                {expected_.is_verified ? "`pipe lock --upgrade INPUT`, with the name of the input, "
                                         "takes the new content"
                                       : "run again once it does not change any more"});
}

/// Checks that the content of a response is the expected one. Throws Changed if it is not.
/// @param size size of the whole content, if the response states it
void DataTransfer::accept(const net::Response& response, std::optional<std::uint64_t> size) {
  if (size && expected_.size && *size != *expected_.size) {
    const auto sizes = std::to_string(*size) + " bytes, and had " + std::to_string(*expected_.size);
    throw_changed(expected_.is_verified
                      ? "has changed at the source since it was locked: it has " + sizes
                      : "changes while it is fetched: it has " + sizes);
  }
  if (expected_.is_verified) return;
  const auto etag = response.header("etag"), modified = response.header("last-modified");
  const auto& known = expected_.state;
  const bool has_etags = !known.etag.empty() && !etag.empty();
  const bool has_dates = !known.modified.empty() && !modified.empty();
  if (has_etags ? bare(etag) != bare(known.etag) : has_dates && modified != known.modified)
    throw_changed("changes while it is fetched");
}

/// Sends a request. @param judge decides by the response's head whether its content is used
async::Task<DataTransfer::Outcome> DataTransfer::send(
    Reading& reading, core::CancelSource& stop,
    const std::function<Outcome(const net::Response&)>& judge) {
  Outcome outcome;
  bool is_judged = false;
  reading.on_headers = [&](const net::Response& head) {
    if (head.status != 200 && head.status != 206) return;
    outcome = judge(head);
    is_judged = true;
  };
  const auto on_body = std::move(reading.on_body);
  reading.on_body = [&](std::string_view bytes) {
    if (outcome.is_done) on_body(bytes);
  };
  try {
    const auto response = co_await sources_.read(from_, reading, stop);
    if (is_judged) co_return outcome;
    constexpr long beyond_end = 416;  // The content has no byte in the range.
    if (response.status == beyond_end) co_return judge(response);
    outcome.problem = "the server answered " + std::to_string(response.status);
    outcome.pause = net::wanted_pause(response);
    if (is_temporary(response.status)) co_return outcome;
    throw sources_.refused(from_, response);
  } catch (const net::TransportError& error) {
    if (stop_.level() != core::StopLevel::none) throw stopped();
    if (is_permanent(error))
      throw core::EnvironmentError("cannot fetch " + without_query(from_.url) + ": " +
                                   error.what());
    outcome = {false, error.what(), {}};
  }
  co_return outcome;
}

/// Reads the first missing bytes; plans the parts if the server has ranges, else reads all content.
async::Task<DataTransfer::Outcome> DataTransfer::begin() {
  const auto have = into_.size();
  const bool asks_range = has_ranges_;
  std::uint64_t limit = 0, received = 0;
  std::size_t part = 0;
  Reading reading;
  if (asks_range)
    reading.headers["range"] = range_text(have, (have / first_range + 1) * first_range);
  const std::function<Outcome(const net::Response&)> judge = [&](const net::Response& head) {
    const auto range = range_of(head);
    // The status is not compared with 206, because some S3 servers answer a range with 200.
    if (range && range->begin == have) {
      accept(head, range->total);
      into_.plan(range->total);
      part = into_.part_of(have);
      return Outcome{true, {}, {}};
    }
    // The server sent another range, or the file already has all bytes, or too many.
    if (head.status != 200 || range) {
      if (head.header("content-range") == "bytes */" + std::to_string(have) && have > 0) {
        into_.plan(have);
        return Outcome{true, {}, {}};
      }
      into_.clear();
      has_ranges_ = false;
      return Outcome{false, "the server answered with another range", {}};
    }
    const auto size = number_in(head.header("content-length"));
    accept(head, size);
    into_.clear();
    limit = size ? *size : expected_.size.value_or(into_.room());
    if (size) into_.check_room(*size);
    return Outcome{true, {}, {}};
  };
  reading.on_body = [&](std::string_view bytes) {
    if (into_.is_planned()) return into_.write(part, bytes);
    received += bytes.size();
    if (received > limit) throw_changed("gives more than " + core::format_bytes(limit));
    into_.append(bytes);
  };
  auto outcome = co_await send(reading, stop_, judge);
  if (!outcome.is_done || into_.is_planned()) co_return outcome;
  // Without a length in the response, a cut connection looks like the end.
  if (expected_.size && into_.size() < *expected_.size)
    outcome = {false, "the server sent less than announced", {}};
  else
    into_.plan(into_.size());  // The content is complete.
  co_return outcome;
}

/// Reads the missing bytes of a part by one request.
async::Task<DataTransfer::Outcome> DataTransfer::read_part(std::size_t part,
                                                           core::CancelSource& stop) {
  const auto missing = into_.missing(part);
  Reading reading;
  reading.headers["range"] = range_text(missing.begin, missing.end);
  const std::function<Outcome(const net::Response&)> judge = [&](const net::Response& head) {
    const auto range = range_of(head);
    if (!range || range->begin != missing.begin) throw NoRanges();
    accept(head, range->total);
    return Outcome{true, {}, {}};
  };
  reading.on_body = [&](std::string_view bytes) { into_.write(part, bytes); };
  auto outcome = co_await send(reading, stop, judge);
  if (outcome.is_done && into_.missing(part).begin < missing.end)
    outcome = {false, "the server sent less than announced", {}};
  co_return outcome;
}

/// Reads parts that no other connection reads, one after the other.
async::Task<> DataTransfer::read_free_parts(core::CancelSource& stop) {
  while (const auto part = into_.take()) {
    async::Backoff backoff(part_retries);
    core::TransferAdvance advance;
    for (const auto begin = into_.missing(*part).begin;;) {
      const auto outcome = co_await read_part(*part, stop);
      if (outcome.is_done) break;
      if (stop.level() != core::StopLevel::none) throw stopped();
      if (advance.has_advanced(into_.missing(*part).begin - begin)) backoff.reset();
      if (backoff.exhausted())
        throw core::EnvironmentError("cannot fetch " + without_query(from_.url) + ": " +
                                     outcome.problem);
      const auto pause = backoff.next(outcome.pause);
      co_await async::sleep(pause, &stop);
    }
  }
}

/// Reads all missing parts, by several connections at a time.
async::Task<> DataTransfer::read_parts() {
  core::CancelSource stop;
  const core::CancelSource::Listener outer(stop_, [&](core::StopLevel level) { stop.stop(level); });
  const std::function<async::Task<>(std::size_t)> worker = [&](std::size_t) -> async::Task<> {
    std::exception_ptr error;
    try {
      co_await read_free_parts(stop);
    } catch (...) {
      error = std::current_exception();
    }
    if (!error) co_return;
    stop.stop(core::StopLevel::immediate);  // Stops the other connections.
    std::rethrow_exception(error);
  };
  co_await async::for_each(std::min(max_connections, into_.parts()), max_connections, worker);
}

async::Task<> DataTransfer::run() {
  if (expected_.size == 0 && !into_.is_planned()) {  // Servers refuse an empty range.
    into_.clear();
    into_.plan(0);
  }
  async::Backoff backoff(source_retries);
  core::TransferAdvance advance;
  while (!into_.is_complete()) {
    bool lost_ranges = false;
    std::exception_ptr changed;
    Outcome outcome;
    try {
      if (into_.is_planned())
        co_await read_parts();
      else
        outcome = co_await begin();
    } catch (const NoRanges&) {
      lost_ranges = true;
    } catch (const Changed&) {
      changed = std::current_exception();
    }
    if (changed) {
      into_.clear();
      std::rethrow_exception(changed);
    }
    if (lost_ranges) {
      into_.clear();
      has_ranges_ = false;
    }
    const bool has_no_problem = outcome.is_done || into_.is_complete() || outcome.problem.empty();
    if (into_.is_planned() && has_no_problem) continue;
    if (stop_.level() != core::StopLevel::none) throw stopped();
    if (advance.has_advanced(into_.received())) backoff.reset();
    if (lost_ranges) continue;
    if (backoff.exhausted())
      throw core::EnvironmentError("cannot fetch " + without_query(from_.url) + ": " +
                                   outcome.problem);
    const auto pause = backoff.next(outcome.pause);
    co_await async::sleep(pause, &stop_);
  }
}

}  // namespace pipeline::fetch
