"""Contents of the campaign folder, and their reading and writing."""
