"""The main job on one machine: real tools, a scripted agent, two phases and a flip."""
