#include "driver/published_names.hpp"

#include "core/diagnostic.hpp"
#include "core/error.hpp"
#include "core/identifier.hpp"
#include "engine/clock.hpp"
#include "store/published.hpp"

namespace pipeline::driver {

PublishedNames::PublishedNames(Workspace& workspace, store::RunStore& store)
    : workspace_(workspace),
      local_(store.published()),
      outputs_(workspace.loop(), workspace.artifacts(), store.folder(),
               workspace.options().remote_store) {
  if (!workspace.options().remote_store.is_given()) return;
  store_.emplace(workspace.loop(), workspace.options().remote_store);
  remote_.emplace(*store_, workspace.artifacts());
}

store::PublishedName PublishedNames::record_of(const std::string& name) {
  return remote_ ? workspace_.await(remote_->find(name)) : local_.find(name);
}

std::vector<std::string> PublishedNames::all() {
  return remote_ ? workspace_.await(remote_->names()) : local_.names();
}

void PublishedNames::change(const std::string& name, const remote_cache::RemoteNames::Edit& edit) {
  remote_ ? workspace_.await(remote_->change(name, edit)) : local_.change(name, edit);
}

std::pair<store::PublishedName, unsigned> PublishedNames::find(const std::string& reference) {
  const auto wanted = store::PublishedReference::parse(reference);
  const auto name = wanted ? wanted->name : reference.substr(0, reference.find('@'));
  auto found = record_of(name);
  if (found.versions.empty())
    throw core::InputError("nothing is published as '" + core::printable(name) + "'",
                           core::did_you_mean(name, all()));
  if (!wanted || (wanted->version != 0 && !found.find(wanted->version)))
    throw core::InputError("'" + name + "' has no version '" +
                           core::printable(reference.substr(name.size() + 1)) + "'");
  return {std::move(found), wanted->version};
}

void PublishedNames::publish(const std::string& name, const store::StepRecord& step,
                             const store::OutputRecord& output) {
  if (!core::is_name(name))
    throw core::InputError("'" + core::printable(name) + "' cannot be an artifact's name",
                           "a name has letters, digits, `.`, `_` and `-`");
  store::PublishedVersion made{.run = step.reused_from.empty() ? step.run : step.reused_from,
                               .step = step.name,
                               .output = output,
                               .time = engine::wall_now()};
  if (remote_) workspace_.await(remote_->send(made));
  change(name, [&](store::PublishedName& record) {
    const auto version = record.publish(made);
    record.promote(version);
    return version;
  });
}

void PublishedNames::promote(const std::string& name, unsigned version) {
  change(name, [&](store::PublishedName& record) {
    record.promote(version);
    return version;
  });
}

void PublishedNames::demote(const std::string& name) {
  change(name, [](store::PublishedName& record) { return record.demote(); });
}

}  // namespace pipeline::driver
