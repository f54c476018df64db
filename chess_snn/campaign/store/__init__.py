"""What lies in the campaign folder, and how it is read and written."""
