"""What people look at and type: web pages, JSON API, command line."""
