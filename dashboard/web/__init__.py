"""The dashboard's web application."""
