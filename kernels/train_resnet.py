#!/usr/bin/env python3
"""ResNet-50 with real decoding and augmentation in loader workers: the example workload in PyTorch.

It makes its own images, needs no network and no data set, and runs on a GPU or, smaller, on a CPU. Every
switch makes one finding appear or disappear:

  --workers N --prefetch N --pinned --async --channels-last --amp --foreach --sync-every-step --compile
"""
import argparse
import io
import os
import random
import tempfile
import time
import zlib

import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset

try:
    from PIL import Image
except ImportError:  # images are then kept as compressed pixels: decoding is inflating
    Image = None


class Bottleneck(nn.Module):
    def __init__(self, channels_in, width, stride):
        super().__init__()
        channels_out = 4 * width
        self.body = nn.Sequential(
            nn.Conv2d(channels_in, width, 1, bias=False), nn.BatchNorm2d(width), nn.ReLU(inplace=True),
            nn.Conv2d(width, width, 3, stride, 1, bias=False), nn.BatchNorm2d(width), nn.ReLU(inplace=True),
            nn.Conv2d(width, channels_out, 1, bias=False), nn.BatchNorm2d(channels_out))
        self.shortcut = nn.Identity()
        if stride != 1 or channels_in != channels_out:
            self.shortcut = nn.Sequential(nn.Conv2d(channels_in, channels_out, 1, stride, bias=False), nn.BatchNorm2d(channels_out))

    def forward(self, x):
        return torch.relu(self.body(x) + self.shortcut(x))


def resnet(blocks, classes):
    """blocks (3, 4, 6, 3) make ResNet-50 (He et al., 2015)."""
    layers = [nn.Conv2d(3, 64, 7, 2, 3, bias=False), nn.BatchNorm2d(64), nn.ReLU(inplace=True), nn.MaxPool2d(3, 2, 1)]
    channels = 64
    for stage, count in enumerate(blocks):
        for block in range(count):
            layers.append(Bottleneck(channels, 64 << stage, 2 if stage > 0 and block == 0 else 1))
            channels = 256 << stage
    return nn.Sequential(*layers, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(channels, classes))


def make_pictures(folder, count, side):
    """Smooth noise, which compresses about as well as a photograph. Existing files are kept."""
    generator = torch.Generator().manual_seed(1)
    paths = [os.path.join(folder, f"{side}-{number}.img") for number in range(count)]
    for path in paths:
        if os.path.exists(path):
            continue
        coarse = torch.rand(1, 3, side // 8, side // 8, generator=generator)
        pixels = nn.functional.interpolate(coarse, size=(side, side), mode="bilinear", align_corners=False)[0]
        pixels = (pixels * 235 + torch.rand(3, side, side, generator=generator) * 20).to(torch.uint8).permute(1, 2, 0).contiguous()
        data = bytes(pixels.flatten().tolist())
        with open(path + ".new", "wb") as file:
            if Image is not None:
                Image.frombytes("RGB", (side, side), data).save(file, "JPEG", quality=90)
            else:
                file.write(zlib.compress(data))
        os.replace(path + ".new", path)
    return paths


class Pictures(Dataset):
    def __init__(self, paths, length, stored_side, side):
        self.paths, self.length, self.stored_side, self.side = paths, length, stored_side, side

    def __len__(self):
        return self.length

    def __getitem__(self, index):
        with open(self.paths[index % len(self.paths)], "rb") as file:
            data = file.read()
        if Image is not None:
            picture = Image.open(io.BytesIO(data)).convert("RGB")
            left, top = random.randrange(self.stored_side - self.side), random.randrange(self.stored_side - self.side)
            picture = picture.resize((self.stored_side, self.stored_side)).crop((left, top, left + self.side, top + self.side))
            pixels = torch.frombuffer(bytearray(picture.tobytes()), dtype=torch.uint8).view(self.side, self.side, 3)
        else:
            whole = torch.frombuffer(bytearray(zlib.decompress(data)), dtype=torch.uint8).view(self.stored_side, self.stored_side, 3)
            left, top = random.randrange(self.stored_side - self.side), random.randrange(self.stored_side - self.side)
            pixels = whole[top:top + self.side, left:left + self.side]
        pixels = pixels.permute(2, 0, 1).float().div_(255)
        if random.random() < 0.5:
            pixels = pixels.flip(2)
        return pixels, index % 1000


class Ahead:
    """Copies the next batch on a stream of its own while this one computes."""

    def __init__(self, batches, device, memory_format):
        self.batches, self.device, self.memory_format = iter(batches), device, memory_format
        self.stream = torch.cuda.Stream()
        self.next = None
        self._copy()

    def _copy(self):
        try:
            images, labels = next(self.batches)
        except StopIteration:
            self.next = None
            return
        with torch.cuda.stream(self.stream):
            self.next = (images.to(self.device, non_blocking=True).to(memory_format=self.memory_format),
                         labels.to(self.device, non_blocking=True))

    def __iter__(self):
        return self

    def __next__(self):
        if self.next is None:
            raise StopIteration
        torch.cuda.current_stream().wait_stream(self.stream)
        images, labels = self.next
        images.record_stream(torch.cuda.current_stream())
        labels.record_stream(torch.cuda.current_stream())
        self._copy()
        return images, labels


def parse():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--steps", type=int, default=40)
    parser.add_argument("--batch", type=int, default=0, help="images a batch (64 on a GPU, 4 on a processor)")
    parser.add_argument("--side", type=int, default=0, help="pixels of a picture's side (224 on a GPU, 64 on a processor)")
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--prefetch", type=int, default=2)
    parser.add_argument("--start-method", choices=("fork", "spawn", "forkserver"))
    parser.add_argument("--cpu", action="store_true")
    for switch in ("pinned", "async", "channels-last", "amp", "foreach", "sync-every-step", "compile"):
        parser.add_argument("--" + switch, action="store_true")
    parser.add_argument("--pictures", metavar="DIR", help="where the pictures are, or are made and stay (default: a folder of its own)")
    parser.add_argument("--torch-profiler", metavar="FILE", help="record the steps with torch.profiler, as a trace")
    parser.add_argument("--torch-profiler-steps", metavar="A:B", default="0:", help="of these, from A to before B (default: all)")
    parser.add_argument("--step-times", metavar="FILE", help="write each step's ms, one a line")
    return parser.parse_args()


def train(args, folder):
    gpu = torch.cuda.is_available() and not args.cpu
    device = torch.device("cuda" if gpu else "cpu")
    batch, side = args.batch or (64 if gpu else 4), args.side or (224 if gpu else 64)
    memory_format = torch.channels_last if args.channels_last else torch.contiguous_format
    model = resnet((3, 4, 6, 3) if gpu else (1, 1, 1, 1), 1000).to(device).to(memory_format=memory_format)
    if args.compile:
        model = torch.compile(model)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01, momentum=0.9, **({"foreach": True} if args.foreach else {}))
    stored_side = side * 8 // 7
    pictures = Pictures(make_pictures(folder, 64, stored_side), batch * args.steps, stored_side, side)
    loader = DataLoader(pictures, batch_size=batch, num_workers=args.workers, pin_memory=args.pinned and gpu, drop_last=True,
                        multiprocessing_context=args.start_method if args.workers else None,
                        **({"prefetch_factor": args.prefetch} if args.workers else {}))
    batches = Ahead(loader, device, memory_format) if getattr(args, "async") and gpu else loader
    profiler = torch.profiler.profile(record_shapes=False) if args.torch_profiler else None
    first, last = (int(number) if number else args.steps for number in args.torch_profiler_steps.split(":"))
    times, start = [], time.perf_counter()
    for step, (images, labels) in enumerate(batches):
        if profiler and step in (first, last):
            if gpu:
                torch.cuda.synchronize()
            (profiler.start if step == first else profiler.stop)()
        images = images.to(device, non_blocking=args.pinned).to(memory_format=memory_format)
        labels = labels.to(device, non_blocking=args.pinned)
        with torch.autocast(device.type, enabled=args.amp, dtype=torch.bfloat16):
            loss = nn.functional.cross_entropy(model(images), labels)
        optimizer.zero_grad(set_to_none=True)
        loss.backward()
        optimizer.step()
        if args.sync_every_step:
            loss.item()
        now = time.perf_counter()
        times.append((now - start) * 1e3)
        start = now
    if gpu:
        torch.cuda.synchronize()
        times[-1] += (time.perf_counter() - start) * 1e3
    if profiler:
        if last >= len(times):
            profiler.stop()
        profiler.export_chrome_trace(args.torch_profiler)
    steady = times[min(5, len(times) // 4):]
    print(f"{torch.cuda.get_device_name() if gpu else 'processor'}: {len(times)} steps, {sum(steady) / len(steady):.2f} ms a step, "
          f"{batch * 1000 * len(steady) / sum(steady):.0f} images/s, loss {loss.item():.3f}")
    if args.step_times:
        with open(args.step_times, "w") as file:
            file.writelines(f"{ms:.4f}\n" for ms in times)


def main():
    args = parse()
    if args.pictures:
        os.makedirs(args.pictures, exist_ok=True)
        train(args, args.pictures)
    else:
        with tempfile.TemporaryDirectory(prefix="lacuna-pictures-") as scratch:
            train(args, scratch)


if __name__ == "__main__":
    main()
