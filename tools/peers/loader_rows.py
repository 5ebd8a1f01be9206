"""The rows of bench_loader.py: each is a setting in which precast and its peers are measured alternately."""
import dataclasses
import itertools

# {kind: (`precast write --image.mode`, maximum of the longer side in px, copies of each photo for rows with a slow
# disk)}. JPEG quality is 90. From a slow disk, each image is read once; with these copies, a file is large enough that
# the batches loaded before the measurement do not matter.
KINDS = {"jpg": ("jpg", 512, 4), "raw": ("raw", 256, 2), "mix": ("proportion", 512, 2), "raw512": ("raw", 512, 1)}
# The form in which a peer reads the photos: a .beton file, a folder of JPEG files, tar shards.
SOURCES = {"precast": "beton", "precast_indexed": "beton", "precast_quasi": "beton", "ffcv": "beton",
           "ffcv_quasi": "beton", "torchvision": "files", "webdataset": "shards", "dali": "files"}
# The variants of precast that are timed, with their options of `precast bench loader`. RATIOS in bench_loader.py lists
# those that are compared with each peer.
PRECAST = {"precast": ("--jpeg-index", "off"), "precast_indexed": ("--jpeg-index", "on"),
           "precast_quasi": ("--jpeg-index", "off", "--order", "quasi_random", "--in-memory", 0)}
PYTHON_PEERS = [peer for peer in SOURCES if peer not in PRECAST]
ALL = ("precast", "precast_indexed", "ffcv", "torchvision", "webdataset", "dali")


@dataclasses.dataclass(frozen=True)
class Row:
    kind: str
    side: int = 176
    format: str = "u8"
    workers: int = 1
    processes: int = 1
    batch: int = 256
    slow_disk: bool = False
    peers: tuple = ("precast", "ffcv")

    def name(self):
        return (f"{self.kind} {self.side} px {self.format}, {self.processes} x {self.workers} workers, "
                f"batch {self.batch}" + (", slow disk" if self.slow_disk else ""))


def comparison(cores):
    """Every peer on JPEGs; FFCV also on the other storage modes."""
    two = min(2, cores)
    rows = [Row("jpg", peers=ALL), Row("jpg", format="f16", peers=("precast", "precast_indexed", "ffcv", "dali")),
            Row("jpg", side=224, peers=("precast", "precast_indexed", "ffcv")), Row("jpg", workers=two, peers=ALL),
            Row("jpg", workers=2 * two, peers=("precast", "precast_indexed", "ffcv", "dali")),
            Row("raw"), Row("raw", format="f16"), Row("raw", side=224), Row("raw", workers=two), Row("mix")]
    return list(dict.fromkeys(rows))


def seeds(plan):
    """FFCV's published data-loading table and similar rows, as in `precast bench loader --table seeds`. Rows that
    differ only in the variant of precast become one row here, with the peers that can read its file.
    @param plan: the output of that command with --dry-run --json"""
    rows = {}
    for row in plan["rows"]:
        disk = row["from"] == "disk"
        mode, side, copies = KINDS[row["file"]]
        if (mode, side, copies if disk else 1) != (row["mode"], row["max_resolution"], row["copies"]):
            raise ValueError(f"expected a file as KINDS describes it, got {row}")
        setting = row["file"], row["image_size"], plan["format"], row["workers"], 1, plan["batch_size"], disk
        rows.setdefault(setting, []).append(row["loader"])
    others = {False: ("ffcv",), True: ("ffcv", "ffcv_quasi")}
    return [Row(*setting, peers=(*ours, *others[setting[-1]],
                                 *(("torchvision", "webdataset", "dali") if setting[0] == "jpg" else ())))
            for setting, ours in rows.items()]


def composer(cores):
    """Composer's benchmark of loaders without a model: one process per GPU (here two processes), several batch sizes,
    one and two workers per core."""
    processes = min(2, cores)
    each = max(1, cores // processes)
    return [Row("jpg", 224, workers=workers, processes=processes, batch=batch, peers=("precast", "ffcv", "torchvision"))
            for workers in (each, 2 * each) for batch in (32, 64, 128, 256, 512)]


# Without `seeds`, because its rows come from `precast bench loader --table seeds`.
TABLES = {"comparison": comparison, "composer": composer}


def product(kinds, sides, formats, workers, processes, batches, peers):
    """A row for each combination, with the peers that can read its kind of file."""
    rows = []
    for kind, side, format, worker, process, batch in itertools.product(
            kinds, sides, formats, workers, processes, batches):
        ours = ("precast", "precast_indexed") if kind == "jpg" else ("precast",)
        readers = tuple(peer for peer in dict.fromkeys((*ours, *peers)) if kind == "jpg" or SOURCES[peer] == "beton")
        rows.append(Row(kind, side, format, worker, process, batch, peers=readers))
    return rows
