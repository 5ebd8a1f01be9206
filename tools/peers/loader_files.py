"""Prepares the same photos for every peer: as .beton files of `precast write`, and as the JPEGs of one of these files,
extracted byte for byte, in a folder or in tar shards."""
import io
import json
import pathlib
import tarfile

from loader_rows import KINDS, SOURCES

SHARDS = 8


def call_write(call, precast, photos, file, mode, side):
    quality = () if mode == "raw" else ("--image.quality", 90)
    call(precast, "write", photos, file, "--image.mode", mode, "--image.max_resolution", side, *quality)


class Files:
    """Creates each source when it is first requested. @param call runs a program and returns its output."""

    def __init__(self, call, precast, photos, scratch):
        self.call, self.precast, self.photos, self.scratch = call, precast, photos, scratch
        self.made = {}

    def source(self, peer, kind, copies=1):
        """Returns the path that a peer reads."""
        key = SOURCES[peer], kind, copies
        if key not in self.made:
            self.made[key] = getattr(self, f"make_{SOURCES[peer]}")(kind, copies)
        return self.made[key]

    def make_beton(self, kind, copies):
        mode, side, _ = KINDS[kind]
        file = self.scratch / f"{kind}_{copies}.beton"
        call_write(self.call, self.precast, self.many_photos(copies), file, mode, side)
        return file

    def many_photos(self, copies):
        """The tar with the given number of copies of each photo."""
        many = self.scratch / f"photos_{copies}.tar"
        if copies == 1:
            return self.photos
        if not many.exists():
            with tarfile.open(self.photos) as source, tarfile.open(many, "w") as target:
                for member in (m for m in source if m.isfile()):
                    content = source.extractfile(member).read()
                    path = pathlib.PurePosixPath(member.name)
                    for copy in range(copies):
                        member.name = str(path.with_name(f"{path.stem}_{copy}{path.suffix}"))
                        target.addfile(member, io.BytesIO(content))
        return many

    def jpegs(self):
        """The JPEGs of the .beton file, in the order of the file."""
        file = self.source("precast", "jpg")
        samples = json.loads(self.call(self.precast, "inspect", file, "--json"))["samples"]
        taken = self.scratch / "taken.jpg"
        for sample in range(samples):
            taken.unlink(missing_ok=True)
            self.call(self.precast, "inspect", file, "--sample", sample, "--output", taken)
            yield taken.read_bytes()

    def make_files(self, kind, copies):
        folder = self.scratch / f"files_{copies}"
        folder.mkdir()
        if copies == 1:
            originals = self.jpegs()
        else:
            originals = [f.read_bytes() for f in sorted(self.source("dali", kind).glob("*.jpg"))]
        for number, content in enumerate(originals):
            for copy in range(copies):
                (folder / f"{number:06}_{copy}.jpg").write_bytes(content)
        return folder

    def make_shards(self, kind, copies):
        folder = self.scratch / f"shards_{copies}"
        folder.mkdir()
        files = sorted(self.source("dali", kind, copies).glob("*.jpg"))
        for shard in range(SHARDS):
            with tarfile.open(folder / f"{shard:03}.tar", "w") as tar:
                for number in range(shard, len(files), SHARDS):
                    for suffix, content in (("jpg", files[number].read_bytes()), ("cls", str(number).encode())):
                        member = tarfile.TarInfo(f"{number:06}.{suffix}")
                        member.size = len(content)
                        tar.addfile(member, io.BytesIO(content))
        (folder / "samples.json").write_text(str(len(files)))
        return folder
