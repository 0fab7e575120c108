"""Other tools' formats: testbed measurements are read, to be drawn beside a run, and runs are written in these
formats.

| format | of | read | written |
|---|---|---|---|
| pcap, pcapng | tcpdump, Wireshark | yes | by `run --pcap` |
| `iperf3` | `iperf3 -J` | yes | yes |
| `ss` | `ss -tin`, repeated | yes | yes |
| `qlog` | QUIC stacks; drawn by qvis | yes | yes |
| `tcp-probe` | the kernel's tcp_probe of before 4.16 | | yes |
| `curl` | `curl -w '%{time_total}'`, a line a fetch | | yes |
| `tc` | a shell script that builds the network with namespaces and `tc` and runs the flows with iperf3 | | yes |
"""

from ackclock.formats.capture import Capture, read_capture
from ackclock.formats.measured import Measured, of_run, read
from ackclock.formats.write import FORMATS, write

__all__ = ["FORMATS", "Capture", "Measured", "of_run", "read", "read_capture", "write"]
