"""Memory for programs, kept in a kb."""
