"""Writes what the jars and the wheel contain and depend on, in the form of CycloneDX.

usage: sbom.py MAVEN DIST

Beside each jar of the Maven repository MAVEN a file `…-cyclonedx.json`, from its POM; beside the
wheel in DIST a file `….cdx.json`, from its metadata, the packages that are installed here, and the
jars in it.
"""

from __future__ import annotations

import hashlib
import sys
import zipfile
from collections.abc import Iterable
from email.parser import BytesParser
from importlib import metadata
from pathlib import Path
from xml.etree import ElementTree

from cyclonedx.model import ExternalReference as Reference
from cyclonedx.model import ExternalReferenceType as ReferenceType
from cyclonedx.model import HashAlgorithm, HashType, Property, XsUri
from cyclonedx.model.bom import Bom
from cyclonedx.model.component import Component, ComponentScope, ComponentType
from cyclonedx.model.license import DisjunctiveLicense
from cyclonedx.output.json import JsonV1Dot6
from cyclonedx.schema import SchemaVersion
from cyclonedx.validation.json import JsonStrictValidator
from packageurl import PackageURL
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

_POM = {"m": "http://maven.apache.org/POM/4.0.0"}


def component(url: PackageURL, content: bytes | None = None, **more: object) -> Component:
    """A library, with the checksum of its file if that is at hand."""
    sums = {HashAlgorithm.SHA_256: hashlib.sha256, HashAlgorithm.SHA_512: hashlib.sha512}
    hashes = (
        []
        if content is None
        else [HashType(alg=a, content=f(content).hexdigest()) for a, f in sums.items()]
    )
    return Component(
        type=ComponentType.LIBRARY,
        bom_ref=str(url),
        group=url.namespace,
        name=url.name,
        version=url.version,
        purl=url,
        hashes=hashes,
        **more,  # type: ignore[arg-type]
    )


def jar(pom: Path) -> tuple[Component, list[Component]]:
    """The jar of a POM, and the libraries that a session has to have or can have beside it."""
    root = ElementTree.parse(pom).getroot()

    def text(element: ElementTree.Element, name: str) -> str:
        return element.findtext(f"m:{name}", namespaces=_POM, default="")

    def url(element: ElementTree.Element) -> PackageURL:
        group, name, version = (text(element, n) for n in ("groupId", "artifactId", "version"))
        return PackageURL("maven", group, name, version, {"type": "jar"})

    own = component(
        url(root),
        pom.with_suffix(".jar").read_bytes(),
        description=text(root, "description"),
        licenses=[DisjunctiveLicense(id=root.findtext(".//m:license/m:name", "", _POM))],
        external_references=[Reference(type=ReferenceType.VCS, url=XsUri(text(root, "url")))],
    )
    needed = [
        # What publishing needs besides is left out of sessions that do not publish.
        component(
            found,
            scope=ComponentScope.REQUIRED
            if found.namespace in ("org.apache.spark", "io.delta")
            else ComponentScope.OPTIONAL,
        )
        for found in map(url, root.iterfind(".//m:dependency", _POM))
    ]
    return own, needed


def bill(about: Component, contained: Iterable[Component] = ()) -> Bom:
    """A bill without dependencies yet."""
    bom = Bom()
    bom.metadata.component = about
    bom.components.update(contained)
    return bom


def of_jar(pom: Path) -> Bom:
    """The bill of a jar. It contains no library."""
    own, needed = jar(pom)
    bom = bill(own, needed)
    bom.register_dependency(own, needed)
    return bom


def of_wheel(wheel: Path, poms: Iterable[Path]) -> Bom:
    """The bill of a wheel: its jars, what they need, and the packages of Python it asks for."""
    with zipfile.ZipFile(wheel) as opened:
        (about,) = (name for name in opened.namelist() if name.endswith(".dist-info/METADATA"))
        said = BytesParser().parsebytes(opened.read(about))
        inside = {
            name.rsplit("/", 1)[-1]: name for name in opened.namelist() if name.endswith(".jar")
        }
        jars = {pom.with_suffix(".jar").name: (pom, jar(pom)) for pom in poms}
        if inside.keys() != jars.keys():
            sys.exit(f"{wheel} has {sorted(inside)}, but there are POMs of {sorted(jars)}")
        for name, (pom, _) in jars.items():
            if opened.read(inside[name]) != pom.with_suffix(".jar").read_bytes():
                sys.exit(f"{name} in {wheel} is not the one in {pom.parent}; build both anew")
    own = component(
        PackageURL("pypi", None, canonicalize_name(str(said["Name"])), str(said["Version"])),
        wheel.read_bytes(),
        description=str(said["Summary"]),
        licenses=[DisjunctiveLicense(id=str(said["License-Expression"]))],
    )
    bom = bill(own)
    for _, (contained, needed) in jars.values():
        own.components.add(contained)
        bom.components.update(needed)
        bom.register_dependency(contained, needed)
    asked = [Requirement(text) for text in said.get_all("Requires-Dist", [])]
    packages = add_packages(bom, asked, set())
    bom.register_dependency(own, [*packages, *(contained for _, (contained, _) in jars.values())])
    return bom


def add_packages(bom: Bom, asked: list[Requirement], seen: set[str]) -> list[Component]:
    """Adds the packages of Python that are asked for here, and all that these ask for."""
    found: dict[str, Component] = {}
    top = not seen
    for requirement in asked:
        if requirement.marker is not None and not requirement.marker.evaluate({"extra": ""}):
            continue
        installed = metadata.distribution(requirement.name)
        name = canonicalize_name(requirement.name)
        found[name] = component(
            PackageURL("pypi", None, name, installed.version), scope=ComponentScope.REQUIRED
        )
        if top:
            # The version is that of this machine; others are allowed.
            allowed = Property(name="iceberg-writer-compat:requirement", value=str(requirement))
            found[name].properties.add(allowed)
    new = [package for package in found if package not in seen]
    seen.update(new)
    for package in new:
        bom.components.add(found[package])
        nested = [Requirement(text) for text in metadata.requires(package) or []]
        bom.register_dependency(found[package], add_packages(bom, nested, seen))
    return list(found.values())


def write(bom: Bom, file: Path) -> None:
    """Writes a bill that fits the schema."""
    text = JsonV1Dot6(bom).output_as_string(indent=2) + "\n"
    if error := JsonStrictValidator(SchemaVersion.V1_6).validate_str(text):
        sys.exit(f"{file} would not fit the schema: {error}")
    file.write_text(text, encoding="utf-8")
    print(file)


def main(maven: Path, dist: Path) -> None:
    """Writes all bills."""
    poms = sorted(maven.rglob("*.pom"))
    for pom in poms:
        file = pom.with_name(f"{pom.stem}-cyclonedx.json")
        write(of_jar(pom), file)
        # As sbt does for the files that it publishes.
        for kind in ("md5", "sha1"):
            digest = hashlib.new(kind, file.read_bytes()).hexdigest()
            file.with_name(f"{file.name}.{kind}").write_text(digest)
    wheels = sorted(dist.glob("*.whl"))
    if len(wheels) != 1:
        sys.exit(f"{dist} has {len(wheels)} wheels, but should have one: run make clean first")
    (wheel,) = wheels
    write(of_wheel(wheel, poms), wheel.with_name("-".join(wheel.stem.split("-")[:2]) + ".cdx.json"))


if __name__ == "__main__":
    main(*map(Path, sys.argv[1:]))
