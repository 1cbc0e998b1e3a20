"""What readers build text with."""
