"""Codes: a receiver in a private network, which a relay knows by a number."""

import re
import signal
import sys
import time

import capture
from failures import NOT_AUTHORISED
from nat import CONES
from nat_scene import Scene
from secrecy import BYTES, NAME, found
from transfer import HERE, make_file

AT_ONCE = 5  # wrong words of one network that are answered at once
DELAYED = 1.0  # seconds that the next answer takes at least


def hidden_from_the_relay(case, lab):
    """The sender types the code that the receiver shows, and has no account at the relay. All of it goes through the relay,
    which sees neither the words, nor the file's name, nor content."""
    scene = Scene(case, lab, mb=1)
    scene.source = lab.dir / NAME
    scene.digest = make_file(scene.source, BYTES)
    relay, address = scene.relays.places[0]
    file = lab.dir / "relay.pcap"
    recorder = lab.spawn(relay, [sys.executable, str(HERE / "capture.py"), str(file)])
    recorder.wait_line("ready", 10)
    scene.listen("--code")
    listening = scene.transfer.listening
    case.check("the code", listening["code"], bool(re.fullmatch(r"\d+-[a-z]+-[a-z]+", listening["code"])))
    dest = listening["destination"]
    case.check("the code with its relay", dest, dest == f"{listening['code']}@{address}")
    scene.transfer.start(scene.homes.sender, *scene.words, dest=dest)
    scene.check_relayed(scene.finish(60))
    recorder.signal(signal.SIGTERM)
    recorder.wait(20)
    case.check("packets that the capture lost", recorder.stdout[-1][1], recorder.stdout[-1][1] == "lost 0")
    packets = set(capture.packets(file))
    case.check("captured at the relay", f"{len(packets)} different packets", sum(map(len, packets)) > BYTES)
    _, *words = listening["code"].split("-")
    secrets = {f"word {number}": word.encode() for number, word in enumerate(words) if len(word) > 4}
    share, shown = found(packets, scene.source.read_bytes(), {**secrets, "words": "-".join(words).encode(), "name": NAME.encode()})
    case.check("content that the relay saw", f"{share:.1%}", share == 0)
    case.check("secrets that the relay saw", shown, shown == [])


def goes_direct(case, lab):
    """With NATs that open, a code leads to a direct path as a ticket does."""
    scene = Scene(case, lab, CONES[2], CONES[2], mb=40).listen("--code")
    scene.transfer.start(scene.homes.sender, *scene.words, dest=scene.transfer.listening["destination"])
    scene.check_direct(scene.finish(), 2)


def guessed(case, lab):
    """Somebody guesses words: five guesses of a network are answered at once, the next one later. Nothing is stored, and the
    sender with the right words does not wait for it."""
    scene = Scene(case, lab, CONES[2], CONES[2]).listen("--code")
    listening = scene.transfer.listening
    stranger, _ = scene.homes.public("stranger", 21)
    number, *words = listening["code"].split("-")
    wrong = f"{number}-{words[0]}-{'cabana' if words[1] == 'anvil' else 'anvil'}@{scene.relays.places[0][1]}"
    took, codes = [], set()
    for _ in range(AT_ONCE + 1):
        guess = lab.spawn(stranger, [case.options.binary, "send", "--json", *scene.words, str(scene.source), wrong])
        begun = time.monotonic()
        guess.wait(60)
        took.append(time.monotonic() - begun)
        codes.add(guess.code)
    case.note("seconds of each guess", [f"{seconds:.2f}" for seconds in took])
    case.check("exit codes of the guesses", codes, codes == {NOT_AUTHORISED})
    case.check("the last one is delayed", f"{took[-1]:.2f} s", took[-1] >= DELAYED)
    case.check("one before it", f"{took[0]:.2f} s", took[0] < DELAYED, pace=True)
    scene.transfer.start(scene.homes.sender, *scene.words, dest=listening["destination"])
    begun = scene.transfer.wait_bytes(1, 30) - scene.transfer.send.begin
    case.check("the right words do not wait", f"{begun:.2f} s", begun < DELAYED, pace=True)
    scene.finish(60)


CASES = {
    "code": hidden_from_the_relay,
    "code-direct": goes_direct,
    "code-guessed": guessed,
}
