#!/usr/bin/env python3
"""Prints each GPU's properties as JSON, under the names of cuDNN's DeviceProperties.

Calls only the driver and needs no torch. Exit code 6 without driver or GPU.
"""

import ctypes
import json
import sys

NO_GPU = 6
# CUdevice_attribute of cuda.h.
ATTRIBUTES = {
    "isTccDriver": 35, "l2CacheSize": 38, "maxCtasPerSM": 106, "maxRegistersPerSM": 82,
    "maxSharedMemoryPerBlock": 8, "maxSharedMemoryPerBlockOptin": 97, "maxThreadsPerBlock": 1,
    "maxThreadsPerSM": 39, "memClockRateKHz": 36, "multiProcessorCount": 16, "pciDeviceId": 34,
    "regsPerBlock": 12, "reservedSharedMemoryPerBlock": 111, "smClockRateKHz": 13,
    "supportCoopLaunch": 95, "warpSize": 10}
# Properties for a roofline model that cuDNN's DeviceProperties do not contain.
MORE = {"memoryBusWidthBits": 37, "maxSharedMemoryPerSM": 81, "pciBusId": 33}
TRIPLES = {"maxBlockSize": (2, 3, 4), "maxGridSize": (5, 6, 7)}
MAJOR, MINOR = 75, 76


class Driver:
    """The functions of libcuda.so.1 that this script calls."""

    def __init__(self, library):
        self.library = library

    def call(self, name, *arguments):
        code = getattr(self.library, name)(*arguments)
        if code != 0:
            raise OSError(f"{name} returned CUDA error {code}")

    def count(self):
        self.call("cuInit", 0)
        number = ctypes.c_int()
        self.call("cuDeviceGetCount", ctypes.byref(number))
        return number.value

    def version(self):
        number = ctypes.c_int()
        self.call("cuDriverGetVersion", ctypes.byref(number))
        return number.value

    def attribute(self, device, number):
        value = ctypes.c_int()
        self.call("cuDeviceGetAttribute", ctypes.byref(value), number, device)
        return value.value

    def name(self, device):
        text = ctypes.create_string_buffer(256)
        self.call("cuDeviceGetName", text, 256, device)
        return text.value.decode()

    def memory_bytes(self, device):
        size = ctypes.c_size_t()
        self.call("cuDeviceTotalMem_v2", ctypes.byref(size), device)
        return size.value


def describe(driver, device):
    properties = {"cudaDeviceId": device, "deviceName": driver.name(device),
                  "deviceVer": 100 * driver.attribute(device, MAJOR) + 10 * driver.attribute(device, MINOR),
                  "driverVer": driver.version(), "totalGlobalMem": driver.memory_bytes(device)}
    for name, number in ATTRIBUTES.items():
        properties[name] = driver.attribute(device, number)
    for name, three in TRIPLES.items():
        properties[name] = [driver.attribute(device, number) for number in three]
    return properties | {"more": {name: driver.attribute(device, n) for name, n in MORE.items()}}


def main():
    try:
        driver = Driver(ctypes.CDLL("libcuda.so.1"))
        devices = [describe(driver, device) for device in range(driver.count())]
    except OSError as failure:
        print(f"device_properties: expected a GPU and its driver, got none: {failure}", file=sys.stderr)
        return NO_GPU
    if not devices:
        print("device_properties: expected a GPU, got a driver that finds none", file=sys.stderr)
        return NO_GPU
    print(json.dumps(devices))
    return 0


if __name__ == "__main__":
    sys.exit(main())
