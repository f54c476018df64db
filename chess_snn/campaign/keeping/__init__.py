"""Is everything whole: checked, mended, repaired, and thinned out."""
