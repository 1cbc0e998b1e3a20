-- How a synced folder is watched, as JSON, see kb/api/folder_models.py. NULL for a folder that nothing watches.
ALTER TABLE folders ADD COLUMN watch TEXT;
