"""What both stores do alike: in one SQL, which is translated for each when it is read."""
