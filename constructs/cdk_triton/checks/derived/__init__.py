"""What several rules derive from a repository: each of it once per check."""
