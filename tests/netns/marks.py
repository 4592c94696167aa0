"""Routers that mark packets instead of dropping them (ECN)."""

import re

from namespaces import sh
from sizes import Way
from transfer import check_complete

MARKS = 20  # a second, at most


def marked(case, lab):
    """A router marks packets that say they may be marked. With `ecn=true` there are such, and the transfer goes on."""
    way = Way(case, lab).forward()
    case.options.set = [*case.options.set, "ecn=true"]
    for command in ("add table ip marks", "add chain ip marks way { type filter hook forward priority 0 ; }",
                    f"add rule ip marks way ip ecn ect0 limit rate {MARKS}/second ip ecn set ce counter"):
        sh("ip", "netns", "exec", way.router, "nft", command)
    transfer, _, digest = way.send(10)
    transfer.wait(120)
    check_complete(case, transfer, digest)
    marks = re.search(r"counter packets (\d+)", sh("ip", "netns", "exec", way.router, "nft", "list", "ruleset"))
    case.check("packets marked", marks and int(marks[1]), marks and int(marks[1]) > 3)


CASES = {"marks": marked}
