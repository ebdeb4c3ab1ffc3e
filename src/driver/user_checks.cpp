#include "driver/user_checks.hpp"

#include <pwd.h>
#include <unistd.h>

#include <charconv>
#include <optional>
#include <string>

#include "model/findings.hpp"

namespace pipeline::driver {
namespace {

/// Returns the name of the account that has this number here, unless it is the caller's or root.
std::optional<std::string> other_account(std::string_view user) {
  const auto number = user.substr(0, user.find(':'));
  unsigned uid = 0;
  const auto [end, error] = std::from_chars(number.data(), number.data() + number.size(), uid);
  if (error != std::errc() || end != number.data() + number.size()) return std::nullopt;
  const auto* account = uid == 0 || uid == ::getuid() ? nullptr : ::getpwuid(uid);
  return account ? std::optional<std::string>(account->pw_name) : std::nullopt;
}

}  // namespace

std::vector<core::Diagnostic> check_users(const std::vector<const StepSpec*>& steps) {
  model::Findings findings;
  for (const auto* step : steps) {
    const auto& user = step->settings->docker.user;
    if (!user || (step->secrets.empty() && step->environment.empty())) continue;
    const auto account = other_account(*user);
    if (!account) continue;
    core::Diagnostic warning{
        "user-of-another",
        "`user: " + *user + "` has the number of '" + *account +
            "' on this machine, who can read the variables and secrets of the step's processes",
        {},
        {},
        "leave out `user`, and the step runs as you"};
    warning.severity = core::Severity::warning;
    findings.add({&step, 1}, std::move(warning));
  }
  return findings.all();
}

}  // namespace pipeline::driver
