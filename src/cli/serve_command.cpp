// `pipe serve`: shows runs as a live page.
#include "cli/commands.hpp"
#include "cli/context.hpp"
#include "cli/page_assets.hpp"
#include "cli/served_runs.hpp"
#include "serve/server.hpp"
#include "templates/templates.hpp"

namespace pipeline::cli {

core::ExitCode serve_command(Context& context) {
  const auto& options = context.options();
  std::optional<RemoteRuns> remote;
  if (!options.serve.remote_profile.empty()) remote.emplace(context, options.serve.remote_profile);
  auto& store = remote ? context.store(remote->state()) : context.existing_store();
  store.forbid_writes();
  serve::Server server(options.serve.host, options.serve.port);
  const serve::Guard guard(serve::new_token(), options.serve.host);
  const bool is_ipv6 = options.serve.host.find(':') != std::string::npos;
  const auto address = "http://" + (is_ipv6 ? "[" + options.serve.host + "]" : options.serve.host) +
                       ":" + std::to_string(server.port()) + "/?token=" + guard.token();
  if (!serve::is_loopback(options.serve.host))
    context.note(
        "warning: other machines reach this address; anyone who sees the traffic sees the runs "
        "and the token, because it is not encrypted. `ssh -L` is a safe way from another "
        "machine");
  if (options.json)
    context.write(nlohmann::json{{"url", address}}.dump() + "\n");
  else
    context.print(address + "\n");
  serve::Api api(store, context.artifacts(),
                 {templates::template_text("serve/serve.html", {}), page_style("serve/serve.css"),
                  page_script({"serve/live_log.js", "serve/runs.js", "serve/leaderboard.js",
                               "serve/compare.js", "serve/lineage.js", "serve/machine.js",
                               "serve/question.js", "serve/serve.js"}),
                  templates::template_text("serve/icon.svg", {})},
                 !remote);
  server.run(api, guard);
  return core::ExitCode::ok;
}

}  // namespace pipeline::cli
