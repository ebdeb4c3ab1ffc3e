/// @file
/// Reads the metrics in an output that is marked with `metrics: true`.
#pragma once

#include <filesystem>
#include <functional>
#include <string>

#include "store/metrics.hpp"

namespace pipeline::engine {

/// Takes a number, without a time, and the metric's name.
using TakeMetric = std::function<void(const std::string&, store::MetricPoint)>;

/// Passes the numbers of a JSON file, named by their path (`test.accuracy`), or of a CSV file,
/// named by their column, in the order of the file. The numbers are not collected, because a short
/// file can have millions. A list of numbers or a column is a series, whose points are numbered
/// from 0, or by a column `step`, `epoch` or `iteration`. Other values are left out. Python's NaN
/// and Infinity are numbers. Throws ContentError for a file that is neither JSON nor CSV, is larger
/// than 16 MiB, or has no number.
/// @param name the output's file name, whose extension tells the format
void read_metric_file(const std::filesystem::path& file, const std::filesystem::path& name,
                      const TakeMetric& take);

}  // namespace pipeline::engine
