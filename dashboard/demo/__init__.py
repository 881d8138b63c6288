"""The demo: real tools over a real database and a real HTTP service, called by a scripted agent."""
