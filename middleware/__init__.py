"""Move an agent's tools from ad-hoc errors to a structured error contract, and prove that it worked."""
