"""Parts of a campaign on other disks: of workers without its folder, and in an object store."""
