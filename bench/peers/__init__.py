"""What `pipe` is measured against; one file a peer."""
