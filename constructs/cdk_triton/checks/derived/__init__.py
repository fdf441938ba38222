"""Values that several rules derive from a repository, each of them once per check."""
