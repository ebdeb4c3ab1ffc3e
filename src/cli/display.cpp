#include "cli/display.hpp"
#include "core/file.hpp"

#include <unistd.h>

namespace pipeline::cli {
namespace {

using namespace std::chrono_literals;

std::unique_ptr<Progress> make_progress(const Context& context) {
  ProgressIo io{.write = [](std::string_view text) { core::write_all(STDOUT_FILENO, text); },
                .paint = context.paint()};
  io.size = [] { return terminal_size(STDOUT_FILENO); };
  if (context.options().json) return json_progress(std::move(io));
  return context.out().live ? live_progress(std::move(io)) : plain_progress(std::move(io));
}

}  // namespace

Display::Display(Context& context, bool stops_on_signals)
    : progress_(make_progress(context)), timer_(context.loop()) {
  if (stops_on_signals)
    signals_.emplace(context.loop(), cancel_, [this, &context](std::string_view text) {
      if (context.options().json) context.note(text);
      progress_->say(text);
    });
  if (context.out().live && !context.options().json) wait();
}

Display::~Display() { close(); }

void Display::close() {
  timer_.cancel();
  signals_.reset();
  progress_->close();
}

void Display::wait() {
  timer_.expires_after(100ms);
  timer_.async_wait([this](boost::system::error_code error) {
    if (error) return;
    progress_->tick();
    wait();
  });
}

}  // namespace pipeline::cli
