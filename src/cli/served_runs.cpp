#include "cli/served_runs.hpp"

#include "core/diagnostic.hpp"
#include "spec/profile_file.hpp"

namespace pipeline::cli {

RemoteRuns::RemoteRuns(const Context& context, const std::string& profile) {
  const auto& file = context.options().file;
  std::error_code error;
  const auto beside = std::filesystem::absolute(file).parent_path();
  const auto remote = spec::find_profile(profile, beside).remote_store;
  if (!remote.is_given())
    throw core::InputError(
        "the profile '" + profile + "' has no remote store",
        "give it an `artifact_store:`, or leave out --bucket to show the runs of "
        "a state folder");
  mirror_.emplace(loop_, remote, folder_.path() / "state");
  async::await(loop_, mirror_->refresh());
  const auto say = [&context](const std::string& trouble) {
    context.note("note: " + core::printable(trouble));
  };
  asio::co_spawn(loop_, mirror_->follow(say), asio::detached);
  thread_ = std::thread([this] {
    loop_.restart();
    loop_.run();
  });
}

RemoteRuns::~RemoteRuns() {
  asio::post(loop_, [this] { mirror_->stop(); });
  if (thread_.joinable()) thread_.join();
}

}  // namespace pipeline::cli
