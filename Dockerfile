# precast in a container. The first command builds it for CPUs, the second for NVIDIA GPUs; the third uses the latter:
#   docker build -t precast .
#   docker build -t precast --build-arg CUDA=13-0 .
#   docker run --rm --gpus all --shm-size=1g --user "$(id -u):$(id -g)" -v "$PWD:/work" precast train R.yaml
# To build plug-ins or run the tests, stop after the first stage: docker build -t precast-build --target build .

FROM debian:12-slim AS build
# The version of NVIDIA's CUDA toolkit, written as in the names of its packages (13-0; only on x86-64, because of the
# package repository below); empty: a build for CPUs only. tools/setup installs libtorch with CUDA if it finds nvcc.
ARG CUDA=
RUN if [ -n "$CUDA" ]; then \
      apt-get update && \
      apt-get install -y --no-install-recommends ca-certificates curl && \
      curl -fsSLo /tmp/keyring.deb https://developer.download.nvidia.com/compute/cuda/repos/debian12/x86_64/cuda-keyring_1.1-1_all.deb && \
      dpkg -i /tmp/keyring.deb && rm /tmp/keyring.deb && \
      apt-get update && \
      apt-get install -y --no-install-recommends "cuda-toolkit-$CUDA" && \
      rm -rf /var/lib/apt/lists/*; \
    fi
WORKDIR /opt/precast
# Packages and libtorch are installed before the sources are copied, so Docker reuses this layer when sources change.
COPY tools/setup tools/lib.sh tools/
RUN tools/setup && rm -rf /var/lib/apt/lists/* /root/.cache
COPY . .
# Compiling a source that includes libtorch takes up to 2 GB of memory. On a machine with many cores and little memory,
# limit the parallel jobs: --build-arg JOBS=4.
ARG JOBS=
RUN cmake -S . -B build -G Ninja -DPRECAST_TESTS=OFF && \
    cmake --build build -j "${JOBS:-$(nproc)}" && \
    cmake --install build --prefix /opt/out --strip
# Lists the Debian packages that the programs and libraries need. ldd does not find two of them: certificates, for
# datasets on HTTP servers, and libzmq, which is loaded when a recipe names a ZMQ address.
RUN LD_LIBRARY_PATH=/opt/out/lib ldd /opt/out/bin/precast* /opt/out/lib/libprecast*.so | \
      sed -n 's|.*=> \(/usr\)\?/\(lib/[^ ]*\) .*|*/\2|p' | sort -u | \
      xargs dpkg-query -S | cut -d : -f 1 | sort -u > /runtime-packages && echo ca-certificates libzmq5 >> /runtime-packages

FROM debian:12-slim
COPY --from=build /runtime-packages /usr/local/share/precast/runtime-packages
RUN apt-get update && \
    xargs apt-get install -y --no-install-recommends < /usr/local/share/precast/runtime-packages && \
    rm -rf /var/lib/apt/lists/*
# libtorch, and the CUDA libraries that its wheel depends on, at the paths where the programs look for them.
COPY --from=build /opt/precast/.venv/lib/python3.11/site-packages/torch/lib /opt/precast/.venv/lib/python3.11/site-packages/torch/lib
COPY --from=build /opt/precast/.venv/lib/python3.11/site-packages/nvidia /opt/precast/.venv/lib/python3.11/site-packages/nvidia
COPY --from=build /opt/out /usr/local
ENV LD_LIBRARY_PATH=/opt/precast/.venv/lib/python3.11/site-packages/nvidia/cu13/lib
RUN ldconfig && useradd --create-home --uid 1000 precast && install -d -o precast /work
USER precast
WORKDIR /work
ENTRYPOINT ["precast"]
CMD ["doctor"]
