"""Simulates a slow disk that is the same for every loader: a Linux control group (v1: blkio, v2: io) limits the bytes
per second that processes read from a disk. Also drops files from the page cache, and makes control groups with other
limits (tools/bench/low_memory.py).

Without root, nothing limits the reads of all programs equally: a user-space file system or a preloaded library would
add work to each read, and more for some loaders than for others. If the group cannot be created, ReadLimit.reason
says why, and the scripts skip the measurements that need it or exit.
"""
import contextlib
import ctypes
import mmap
import os
import pathlib
import time


def disk_below(path, sys_root=pathlib.Path("/sys")):
    """The disk ("254:0", no partition) that contains a path, or None for file systems in memory or on several disks."""
    number = os.stat(path).st_dev
    name = f"{os.major(number)}:{os.minor(number)}"
    device = (sys_root / "dev/block" / name).resolve()
    if os.major(number) == 0 or not device.exists():
        return None
    return (device.parent / "dev").read_text().strip() if (device / "partition").exists() else name


def mounted_groups(mounts, controller="blkio"):
    """[(version, folder)]: the mounted hierarchies of control groups that may have a controller, from the text of
    /proc/mounts. `controller` is its name in version 1."""
    found = []
    for line in mounts.splitlines():
        _, folder, kind, options = line.split()[:4]
        if kind == "cgroup" and controller in options.split(","):
            found.append((1, pathlib.Path(folder)))
        elif kind == "cgroup2":
            found.append((2, pathlib.Path(folder)))
    return found


def parent_group(version, folder, controller):
    """The group in which a new group with limits can be created. In version 1, this is the group of this process or, if
    the mount does not show it, `folder`. In version 2, it is `folder`, because a group that contains processes cannot
    have subgroups with controllers; raises OSError unless the controller is delegated."""
    if version == 1:
        for line in pathlib.Path("/proc/self/cgroup").read_text().splitlines():
            _, controllers, path = line.split(":", 2)
            if controller in controllers.split(",") and (folder / path[1:] / "cgroup.procs").exists():
                return folder / path[1:]
    elif controller not in (folder / "cgroup.subtree_control").read_text().split():
        raise OSError(f"the controller {controller} is not delegated "
                      f"(as root: echo +{controller} > {folder}/cgroup.subtree_control)")
    return folder


def counted_bytes(counters, disk):
    """The bytes read from a disk: "254:0 Read 4096" in v1's counters, "254:0 rbytes=4096 wbytes=..." in v2's."""
    for words in map(str.split, counters.splitlines()):
        if words[:2] == [disk, "Read"]:
            return int(words[2])
        if words[:1] == [disk]:
            for word in words[1:]:
                if word.startswith("rbytes="):
                    return int(word.removeprefix("rbytes="))
    return 0


class ControlGroup:
    """A control group with a limit. `reason` is None, or says why there is no group. Use it as a context manager, which
    removes the group at the end.

    limits: {version: (controller, file, text)}; the text is written to the file, which sets the limit
    within: the ControlGroup of another limit for the same processes. In version 2, a process is in only one group, so
    both limits are set in that group."""

    group = version = reason = None
    made = False

    def __init__(self, name, limits, within=None):
        reasons = []
        for version, folder in mounted_groups(pathlib.Path("/proc/mounts").read_text(), limits[1][0]):
            controller, file, text = limits[version]
            try:
                parent = parent_group(version, folder, controller)
                shared = within.group if within is not None and within.version == version == 2 else None
                if shared:
                    self.limit(shared, file, text)
                else:
                    self.make(parent / f"{name}_{os.getpid()}", file, text)
                self.version = version
                return
            except OSError as error:
                reasons.append(f"v{version}: {error}")
        none = f"no cgroup file system with the controller {limits[1][0]} is mounted"
        self.reason = f"cannot create a control group: {'; '.join(reasons) or none}. Run as root"

    def make(self, group, file, text):
        group.mkdir()
        try:
            self.limit(group, file, text)
        except OSError:
            group.rmdir()
            raise
        self.made = True

    def limit(self, group, file, text):
        (group / file).write_text(text)
        self.group = group

    def enter(self):
        """Adds the calling process to the group; for preexec_fn of subprocess."""
        (self.group / "cgroup.procs").write_text(str(os.getpid()))

    def __enter__(self):
        return self

    def __exit__(self, *_):
        for _ in range(50 if self.made else 0):  # the group can be removed once its last process has ended
            with contextlib.suppress(OSError):
                self.group.rmdir()
                return
            time.sleep(0.1)


class ReadLimit(ControlGroup):
    """A group that reads at most `bytes_per_second` from the disk that contains `path`."""

    def __init__(self, path, bytes_per_second, within=None):
        self.disk = disk_below(path)
        if self.disk is None:
            self.reason = f"{path} is not on a single block device (memory, overlay, network or several disks)"
            return
        super().__init__("precast_peers", {
            1: ("blkio", "blkio.throttle.read_bps_device", f"{self.disk} {bytes_per_second}"),
            2: ("io", "io.max", f"{self.disk} rbps={bytes_per_second}")}, within)

    def bytes_read(self):
        """The bytes that all processes of the group have read from the disk since the group was created."""
        for name in ("blkio.throttle.io_service_bytes", "io.stat"):
            if (self.group / name).exists():
                return counted_bytes((self.group / name).read_text(), self.disk)
        return 0


def forget(path):
    """Drops a file, or all files of a folder, from the page cache."""
    for file in sorted(path.iterdir()) if path.is_dir() else [path]:
        descriptor = os.open(file, os.O_RDONLY)
        os.fsync(descriptor)  # the kernel does not drop dirty pages
        os.posix_fadvise(descriptor, 0, 0, os.POSIX_FADV_DONTNEED)
        os.close(descriptor)


def cached_share(path):
    """The share of a file, or of the files of a folder, that is in the page cache: 0 to 1."""
    libc = ctypes.CDLL(None, use_errno=True)
    libc.mincore.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_char_p]
    pages = resident = 0
    for file in sorted(path.iterdir()) if path.is_dir() else [path]:
        size = file.stat().st_size
        if not size:
            continue
        with open(file, "rb") as opened, mmap.mmap(opened.fileno(), 0, access=mmap.ACCESS_COPY) as mapped:
            count = -(-size // mmap.PAGESIZE)
            flags = ctypes.create_string_buffer(count)
            window = (ctypes.c_char * size).from_buffer(mapped)
            libc.mincore(ctypes.addressof(window), size, flags)
            del window
            pages += count
            resident += sum(flag & 1 for flag in flags.raw)
    return resident / pages if pages else 0.0
