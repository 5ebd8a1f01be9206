"""ResNet in plain torch, with the module names and the order of random draws of torchvision.

With the same seed its weights equal torchvision's bit for bit (tests/peers/twin_resnet.py), so a host needs no
torchvision wheel for the twin. He et al., Deep Residual Learning for Image Recognition,
CVPR 2016; as in torchvision, a bottleneck's stride is in its 3x3 convolution.
"""

from torch import flatten, nn


def conv(inputs, outputs, size, stride=1):
    return nn.Conv2d(inputs, outputs, size, stride, padding=size // 2, bias=False)


class BasicBlock(nn.Module):
    expansion = 1

    def __init__(self, inputs, width, stride, downsample):
        super().__init__()
        self.conv1 = conv(inputs, width, 3, stride)
        self.bn1 = nn.BatchNorm2d(width)
        self.relu = nn.ReLU(inplace=True)
        self.conv2 = conv(width, width, 3)
        self.bn2 = nn.BatchNorm2d(width)
        self.downsample = downsample

    def forward(self, x):
        out = self.relu(self.bn1(self.conv1(x)))
        out = self.bn2(self.conv2(out))
        out += x if self.downsample is None else self.downsample(x)
        return self.relu(out)


class Bottleneck(nn.Module):
    expansion = 4

    def __init__(self, inputs, width, stride, downsample):
        super().__init__()
        self.conv1 = conv(inputs, width, 1)
        self.bn1 = nn.BatchNorm2d(width)
        self.conv2 = conv(width, width, 3, stride)
        self.bn2 = nn.BatchNorm2d(width)
        self.conv3 = conv(width, width * self.expansion, 1)
        self.bn3 = nn.BatchNorm2d(width * self.expansion)
        self.relu = nn.ReLU(inplace=True)
        self.downsample = downsample

    def forward(self, x):
        out = self.relu(self.bn1(self.conv1(x)))
        out = self.relu(self.bn2(self.conv2(out)))
        out = self.bn3(self.conv3(out))
        out += x if self.downsample is None else self.downsample(x)
        return self.relu(out)


ARCHITECTURES = {"resnet18": (BasicBlock, [2, 2, 2, 2]), "resnet34": (BasicBlock, [3, 4, 6, 3]),
                 "resnet50": (Bottleneck, [3, 4, 6, 3]), "resnet101": (Bottleneck, [3, 4, 23, 3]),
                 "resnet152": (Bottleneck, [3, 8, 36, 3])}


class ResNet(nn.Module):
    def __init__(self, arch, classes):
        super().__init__()
        block, depths = ARCHITECTURES[arch]
        self.conv1 = nn.Conv2d(3, 64, 7, stride=2, padding=3, bias=False)
        self.bn1 = nn.BatchNorm2d(64)
        self.relu = nn.ReLU(inplace=True)
        self.maxpool = nn.MaxPool2d(3, stride=2, padding=1)
        self.inputs = 64
        self.layer1 = self.make_layer(block, 64, depths[0], 1)
        self.layer2 = self.make_layer(block, 128, depths[1], 2)
        self.layer3 = self.make_layer(block, 256, depths[2], 2)
        self.layer4 = self.make_layer(block, 512, depths[3], 2)
        self.avgpool = nn.AdaptiveAvgPool2d(1)
        self.fc = nn.Linear(512 * block.expansion, classes)
        for module in self.modules():
            if isinstance(module, nn.Conv2d):
                nn.init.kaiming_normal_(module.weight, mode="fan_out", nonlinearity="relu")

    def make_layer(self, block, width, depth, stride):
        outputs = width * block.expansion
        downsample = None
        if stride != 1 or self.inputs != outputs:
            downsample = nn.Sequential(conv(self.inputs, outputs, 1, stride), nn.BatchNorm2d(outputs))
        blocks = [block(self.inputs, width, stride, downsample)]
        self.inputs = outputs
        blocks += [block(outputs, width, 1, None) for _ in range(1, depth)]
        return nn.Sequential(*blocks)

    def forward(self, x):
        x = self.maxpool(self.relu(self.bn1(self.conv1(x))))
        x = self.layer4(self.layer3(self.layer2(self.layer1(x))))
        return self.fc(flatten(self.avgpool(x), 1))
