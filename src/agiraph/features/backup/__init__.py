"""Backup: rows and files of a home in one file, and all data of a team as readable files."""

from agiraph.core.domain.features import Feature

FEATURE = Feature(
    name="backup",
    routers=(
        "agiraph.features.backup.routes:router",
        "agiraph.features.backup.routes:export_router",
    ),
    commands=dict.fromkeys(("backup", "restore", "export"), "agiraph.features.backup.commands"),
)
