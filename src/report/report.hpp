/// @file
/// A run as one HTML file that makes no request.
#pragma once

#include <string>

#include <nlohmann/json_fwd.hpp>

#include "report/curves.hpp"
#include "store/artifact_store.hpp"
#include "store/run_store.hpp"

namespace pipeline::report {

/// Limits of the data of a run. Sizes are bytes of the page.
struct ReportLimits {
  std::size_t logs = 1'500'000;        ///< All logs together; 0: no log is opened.
  std::size_t failed_log = 64 * 1024;  ///< The end of a failed step's log.
  std::size_t log = 8 * 1024;          ///< The end of any other log.
  std::size_t pictures = 2'000'000;    ///< All pictures together; 0: only their digests.
  CurveLimits curves = {.all_points = 40'000};
  std::size_t digits = 12;     ///< Length of an artifact's digest.
  bool checks_driver = false;  ///< Whether a running run whose driver is dead is shown as died.
  bool details = true;  ///< Whether steps are complete; else only what tables and graphs show.
};

/// Returns the limits with which the report of a run of ten thousand steps has at most 5 MB: logs
/// and pictures share what so many steps leave.
ReportLimits limits_for(std::size_t steps);

/// Returns all data of the page: the run, its steps with attempts, logs, outputs and resource
/// usage, metrics and pictures.
nlohmann::json report_data(store::RunStore& store, const store::ArtifactStore& artifacts,
                           const store::RunRecord& run, const ReportLimits& limits);

/// The texts of templates/report.
struct ReportTemplates {
  std::string page, style, script;
};

/// Puts the data into the page. No text in the data can end the enclosing element, and the page's
/// policy allows only its own style and script.
std::string render_report(const nlohmann::json& data, const ReportTemplates& templates);

/// Returns an element that shows the page inside another one, such as a notebook: scripts of the
/// framed page have access neither to the other page nor to its origin.
/// @param title read out to those who cannot see the frame
std::string framed_report(const std::string& page, const std::string& title);

}  // namespace pipeline::report
