#pragma once

namespace precast::tools {

/// Help texts of options that several commands have, so that each option has the same text
/// everywhere. A command may append details after a semicolon. @{
inline constexpr const char* kJsonHelp = "print the result as JSON";
inline constexpr const char* kWorkersHelp = "number of threads; 0: one per core";
inline constexpr const char* kSeedHelp = "seed of all random choices";
inline constexpr const char* kShuffleHelp = "write the samples in random order";
inline constexpr const char* kNoChecksumsHelp =
    "leave out checksums, class names and options; like FFCV's files, the file then consists of "
    "whole pages, even for a small dataset at least two (16 MiB)";
inline constexpr const char* kLabelFieldHelp =
    "integer field with the class; default: the first with class names, else the first integer "
    "field";
inline constexpr const char* kEveryHelp =
    "MCUs between two checkpoints of the JPEG index; an MCU is 16 x 16 px in most files";
inline constexpr const char* kImageSizeHelp = "side of the images in px";
inline constexpr const char* kRunsHelp = "number of measurements; the median is reported";
inline constexpr const char* kSecondsHelp =
    "minimum duration of a measurement in seconds; passes are always completed";
inline constexpr const char* kSvgHelp = "draw the result into an SVG file";
inline constexpr const char* kProgramHelp = "program that trains; default: this program";
inline constexpr const char* kRetryFailedHelp = "also retry trials that have failed permanently";
inline constexpr const char* kDryRunHelp = "check everything and show the plan; nothing is trained";
inline constexpr const char* kStatusHelp = "show the results so far; nothing is trained";
/// @}

}  // namespace precast::tools
