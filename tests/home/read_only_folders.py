"""Read-only folders: exports and removes a tree to which its owner may not write.

Root may write everywhere, so this runs as an ordinary user.
"""

import json
import sys
from pathlib import Path

from agiraph.core.home.safe_folder import Folder
from agiraph.features.backup.team_export import copy_files


def main(own: Path) -> dict[str, object]:
    team = own / "team"
    (team / "read-only" / "inner").mkdir(parents=True)
    (team / "read-only" / "inner" / "beans.md").write_text("42")
    (team / "closed").mkdir()
    (team / "closed" / "hidden.md").write_text("7")
    (team / "secret.md").write_text("8")
    (own / "outside").mkdir()
    (team / "link").symlink_to(own / "outside")
    (team / "secret.md").chmod(0)
    (own / "outside").chmod(0o555)
    for name in ("closed", "read-only/inner", "read-only"):
        (team / name).chmod(0o555 if "read" in name else 0)
    left_out = copy_files(team, own / "copy")
    with Folder.open(own) as folder:
        folder.remove("team")
        folder.remove("copy")
    mode = (own / "outside").stat().st_mode & 0o777
    return {
        "left_out": sorted(each["path"] for each in left_out),
        "left": sorted(path.name for path in own.iterdir()),
        "mode of what a link leads to": oct(mode),
    }


if __name__ == "__main__":
    print(json.dumps(main(Path(sys.argv[1]))))
