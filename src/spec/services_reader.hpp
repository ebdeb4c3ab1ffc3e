/// @file
/// Reads the services of a step: the containers that run beside it.
#pragma once

#include <map>
#include <string>

#include <nlohmann/json_fwd.hpp>
#include <pipeline/spec.hpp>

#include "settings/decode.hpp"

namespace pipeline::spec {

using Services = std::map<std::string, ServiceSpec>;

/// Reads `{db: {image: postgres:16, ready: {port: 5432}}}`.
Services read_services(const core::Value& value, settings::Diagnostics& diagnostics);

/// Reports services that contradict other keys of their step. @param written the step's `services`
void check_services(const StepSpec& step, const core::Value& written,
                    settings::Diagnostics& diagnostics);

/// Returns the document from which read_services() reads these services.
nlohmann::json services_document(const Services& services);

nlohmann::json services_schema();

}  // namespace pipeline::spec
