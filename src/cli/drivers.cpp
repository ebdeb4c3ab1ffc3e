#include "cli/drivers.hpp"

#include "core/diagnostic.hpp"
#include "kubernetes/client.hpp"
#include "orchestrators/kubernetes/driver.hpp"

namespace pipeline::cli {
namespace {

constexpr std::chrono::seconds good_for{3};
constexpr kubernetes::Patience hasty{std::chrono::milliseconds(200), std::chrono::milliseconds(200), 1};

}  // namespace

std::string name_of(const store::Driver& driver) {
  return driver.is_elsewhere() ? "the Job " + driver.lease.name + " in the namespace " + driver.lease.name_space
                               : "process " + std::to_string(driver.process.pid);
}

Drivers::Life Drivers::life_of(const store::RunRecord& run) {
  if (!run.driver.is_elsewhere()) return run.driver.process.alive() ? Life::lives : Life::gone;
  const auto now = Clock::now();
  if (const auto known = answers_.find(run.id); known != answers_.end() && now - known->second.at < good_for) return known->second.life;
  const auto& lease = run.driver.lease;
  const std::pair cluster(lease.context, lease.name_space);
  if (const auto silent = silent_clusters_.find(cluster); silent != silent_clusters_.end() && now - silent->second < good_for) return Life::unknown;
  auto life = Life::unknown;
  try {
    kubernetes::Client client(context_.loop(), kubernetes::find_cluster({.context = lease.context, .name_space = lease.name_space}), hasty);
    life = context_.await(driver_goes_on(client, lease.name)) ? Life::lives : Life::gone;
  } catch (const EnvironmentError& error) { silence_ = error.what(); } catch (const InputError& error) {
    silence_ = error.what();
  }
  if (life == Life::unknown) silent_clusters_[cluster] = Clock::now();
  answers_[run.id] = {life, Clock::now()};
  return life;
}

std::string Drivers::described(const store::RunRecord& run) {
  const auto& lease = run.driver.lease;
  auto text = name_of(run.driver) + (lease.context.empty() ? "" : " of context " + lease.context);
  if (life_of(run) == Life::unknown) return text + ": " + silence_;
  try {
    kubernetes::Client client(context_.loop(), kubernetes::find_cluster({.context = lease.context, .name_space = lease.name_space}), hasty);
    const auto news = context_.await(news_of_driver(client, lease.name));
    if (!news.goes_on)
      text += ", which is gone; `" + context_.options().name + " resume " + run.id + "` goes on with the run from here";
    else if (!news.holder.empty())
      text += ", its pod " + news.holder;
    else if (!news.waits_for.empty())
      text += ": " + news.waits_for;
    else if (!news.failure.empty())
      text += ", whose last pod failed: " + news.failure;
  } catch (const EnvironmentError& error) { text += std::string(": ") + error.what(); }
  return text;
}

}  // namespace pipeline::cli
