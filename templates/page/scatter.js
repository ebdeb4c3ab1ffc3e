// scatter
