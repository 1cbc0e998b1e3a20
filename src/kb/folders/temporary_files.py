"""Temporary files of Office, editors, browsers, sync programs and file managers."""

import re
from typing import Final

FILES: Final = re.compile(
    r"""
      ~\$.* | ~wr[acdfl]\d+\.(?:tmp|asd|wbk|doc.?) | .*\.(?:asd|wbk|xlk|laccdb|onetoc2)
    | .*~ | \#.*\# | .*\.(?:sw[a-p]|kate-swp|un~) | 4913
    | .*\.(?:tmp|temp|crdownload|part|partial|download|opdownload|filepart|aria2|ytdl|!ut|!sync|!qb|bc!|bts)
    | .*\.(?:dtapart|xltd)
    | .*___jb_(?:tmp|old)___ | .*[:\uf03a](?:zone\.identifier|com\.dropbox\.\w+)(?::\$data)?
    | .*\.sb-[0-9a-f]{8}-\w{6} | .*\.dwl2?
    | \.kb-(?:folder(?:\.part)?|part-(?:\d+-)?[0-9a-f]{32})
    | thumbs\.db(?::encryptable)? | ehthumbs(?:_vista)?\.db | desktop\.ini | icon\r
    """,
    re.VERBOSE | re.IGNORECASE | re.DOTALL,
)

FOLDERS: Final = {
    "$recycle.bin", "system volume information", "lost+found", "@eadir", "#recycle", "@recycle", "@tmp", "#snapshot",
    "@recently-snapshot", "network trash folder", "temporary items",
}  # fmt: skip
"""Folders of file systems and of network disks."""


def is_leftover(name: str, *, is_folder: bool) -> bool:
    return name.lower() in FOLDERS if is_folder else FILES.fullmatch(name) is not None
