#include "cli/display.hpp"

#include <unistd.h>

#include "core/file.hpp"

namespace pipeline::cli {
namespace {

using namespace std::chrono_literals;

/// Returns the display that options and terminal ask for.
std::unique_ptr<Progress> make_progress(const Context& context,
                                        const driver::Background* background) {
  ProgressIo io{.write =
                    [background](std::string_view text) {
                      if (!background || !background->has_left())
                        core::write_all(STDOUT_FILENO, text);
                    },
                .paint = context.paint(),
                .is_verbose = context.options().verbose};
  io.size = [] { return terminal_size(STDOUT_FILENO); };
  if (context.options().quiet) {
    if (context.options().json) io.write = [](std::string_view) {};
    return quiet_progress(std::move(io));
  }
  if (context.options().json) return json_progress(std::move(io));
  const bool is_live = context.out().live && !background;
  return is_live ? live_progress(std::move(io)) : plain_progress(std::move(io));
}

}  // namespace

Display::Display(const Context& context, asio::io_context& loop, SignalHandling signals,
                 const driver::Background* background)
    : progress_(make_progress(context, background)), timer_(loop) {
  if (signals == SignalHandling::stop)
    signals_.emplace(loop, cancel_, [this, &context](std::string_view text) {
      if (context.options().json) context.note(text);
      progress_->say(text);
    });
  if (context.out().live && !context.options().json && !background) schedule_tick();
}

Display::~Display() { close(); }

void Display::close() {
  timer_.cancel();
  signals_.reset();
  progress_->close();
}

void Display::schedule_tick() {
  timer_.expires_after(100ms);
  timer_.async_wait([this](boost::system::error_code error) {
    if (error) return;
    progress_->tick();
    schedule_tick();
  });
}

void RunDisplay::warn(const std::string& text, const nlohmann::json& warning) {
  say(text);
  if (context_.options().json)
    context_.write(nlohmann::json{{"event", "warning"}, {"warning", warning}}.dump() + "\n");
}

}  // namespace pipeline::cli
