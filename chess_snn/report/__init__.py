"""Results as pictures and pages."""
