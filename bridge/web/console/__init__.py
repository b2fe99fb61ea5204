"""The console: the pages for people, and how they are served."""
