"""``python -m changeover``: the command line, from any folder."""

from __future__ import annotations

if __name__ == "__main__":
    from changeover.dashboard.cli import main

    main()
