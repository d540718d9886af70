#!/usr/bin/env python3
"""pack.py FOLDER ARCHIVE: packs the files of FOLDER, a target's inputs, into corpus/TARGET.tar.gz. Equal files give an
equal archive: they are sorted by name, without times and owners."""
import gzip
import sys
import tarfile
from pathlib import Path


def pack(folder, archive):
    with open(archive, "wb") as raw, gzip.GzipFile("", "wb", 9, raw, mtime=0) as packed, \
         tarfile.open(fileobj=packed, mode="w", format=tarfile.USTAR_FORMAT) as out:
        for path in sorted(Path(folder).iterdir()):
            entry = tarfile.TarInfo(path.name)
            entry.size = path.stat().st_size
            with open(path, "rb") as file:
                out.addfile(entry, file)


if __name__ == "__main__":
    if len(sys.argv) != 3:
        sys.exit(__doc__)
    pack(*sys.argv[1:])
