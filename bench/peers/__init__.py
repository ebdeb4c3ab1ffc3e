"""Programs with which `pipe` is compared, one file for each."""
