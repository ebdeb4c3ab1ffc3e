#include "orchestrators/last_output.hpp"

namespace pipeline::orchestrators {

async::Task<> read_last_output(async::JoinableTask& output, async::Change& changed,
                               const std::uint64_t& received, core::CancelSource& cancel,
                               core::CancelSource& stream) {
  using Clock = std::chrono::steady_clock;
  constexpr std::chrono::seconds max_silence{10}, max_hurried_wait{1};
  const auto is_hurried = [&] { return cancel.level() == core::StopLevel::immediate; };
  const core::CancelSource::Listener listener(cancel, [&](core::StopLevel) { changed.tell(); });
  while (!output.done()) {
    const auto heard = received;
    const bool hurried = is_hurried();
    const auto until = Clock::now() + (hurried ? max_hurried_wait : max_silence);
    while (!output.done() && Clock::now() < until && hurried == is_hurried())
      co_await changed.wait(until);
    if (Clock::now() >= until && (hurried || received == heard))
      stream.stop(core::StopLevel::immediate);
  }
}

}  // namespace pipeline::orchestrators
