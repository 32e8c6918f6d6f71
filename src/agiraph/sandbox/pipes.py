"""Pipes: makes a shell command fail if a stage of its pipe fails, and shows every stage's code.

`pytest | tail` has the exit code of `tail` in a plain shell. With `pipefail` it has that of
`pytest`. A stage that SIGPIPE ends (141), because the next one has read enough (`yes | head -1`),
is no failure; `pipefail` alone would make it one.
"""

import re

LONGEST_BYTES = 130_000
"""Commands longer than this run as they are, without pipefail: with our addition they could exceed
the length that Linux allows for one argument."""
_READS_A_PART = re.compile(r"\|\s*(?:head\b|grep\s+(?:-\w+\s+)*-\w*[qm]|sed\s.*q\b)")
"""Stages that end before they have read everything, so that the stage before gets SIGPIPE."""
_ON_EXIT = """\
__c=$? __p=("${PIPESTATUS[@]}"); \
if [ "${#__p[@]}" -gt 1 ]; then \
__l=0 __n=0; \
for __s in "${__p[@]}"; do \
if [ "$__s" != 0 ]; then __l=$__s; fi; \
if [ "$__s" != 0 ] && [ "$__s" != 141 ]; then __n=$__s; fi; \
done; \
if [ "$__c$__s$__lax" = 001 ]; then __c=$__n __l=$__n; fi; \
if [ "$__l" = "$__c" ] && [ "$__c" != 0 ]; then \
if [ "$__c" = 141 ] && [ "$__s" = 0 ]; then __c=$__n; fi; \
if [ "$__c" != 0 ]; then echo "[exit codes of the pipe: ${__p[*]}]" >&2; fi; \
fi; fi; exit "$__c\""""


def reporting(command: str) -> str:
    """Return the command so that bash reports the failure of any stage of its last pipe.

    It stays on its line, so that the numbers in error messages are right. Another shell runs it as
    it is.
    """
    if len(command.encode(errors="replace")) > LONGEST_BYTES:
        return command
    lax = _may_be_misled(command)
    option = "" if lax else "set -o pipefail; "
    return (
        f"if [ -n \"$BASH_VERSION\" ]; then __lax={int(lax)}; trap '{_ON_EXIT}' EXIT; "
        f"{option}fi; {command}"
    )


def _may_be_misled(command: str) -> bool:
    """Whether `pipefail` could make the command take the wrong branch.

    In `yes | head -1 && make` the code 141 would keep `make` from running. Such a command runs
    without the option, and the codes of its last pipe alone are looked at.
    """
    last_branch = max(command.rfind(word) for word in ("&&", "||", "if ", "while ", "set -e"))
    return any(
        found.start() < last_branch or "if " in command or "while " in command
        for found in _READS_A_PART.finditer(command)
    ) or ("set -e" in command and _READS_A_PART.search(command) is not None)
