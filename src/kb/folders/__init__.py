"""The state of folders on the disk: their files, devices and changes."""
