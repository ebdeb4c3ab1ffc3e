/// @file
/// Durations and clocks. libstdc++ has them in a header of their own: its <chrono> brings in all of
/// the streams, which take longer to read than everything of ours.
#pragma once

#if __has_include(<bits/chrono.h>)
#include <bits/chrono.h>
#else
#include <chrono>
#endif
