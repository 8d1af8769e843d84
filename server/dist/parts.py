"""What a distributed program contains beside our own code: the list of parts (SPDX 2.3) and their licenses."""
import collections
import hashlib
import json
import os
import re
import subprocess
import time

# kind: how it got in; version and license as its packager tells them
Part = collections.namedtuple("Part", "name version kind purl license text")


def run(*command):
    """What a command prints; "" where it fails or is not there."""
    try:
        return subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, check=True, text=True).stdout.strip()
    except (OSError, subprocess.CalledProcessError):
        return ""


def read(path):
    try:
        with open(path, encoding="utf-8", errors="replace") as file:
            return file.read()
    except OSError:
        return ""


def library(path, kind):
    """A library of the distribution, by the file that was linked."""
    package = run("dpkg", "-S", os.path.realpath(path)).split(": ")[0].split(",")[0]
    if not package:
        package = run("dpkg", "-S", path).split(": ")[0].split(",")[0]
    name = re.sub(r"^lib|\.(a|so)\b.*$", "", os.path.basename(path))
    if not package:
        return Part(name, "NOASSERTION", kind, None, "NOASSERTION", "")
    source, version = (run("dpkg-query", "-W", "-f", "${source:Package} ${source:Version}", package).split() + ["", ""])[:2]
    plain = package.split(":")[0]
    distribution = dict(re.findall(r'^(ID|VERSION_ID)="?([^"\n]*)', read("/etc/os-release"), re.M))
    purl = f"pkg:deb/{distribution.get('ID', 'debian')}/{source}@{version.replace(':', '%3A').replace('+', '%2B')}?arch=source"
    copyright_text = read(f"/usr/share/doc/{plain}/copyright")
    return Part(source, version, kind, purl, "NOASSERTION", copyright_text)


def page_packages(web):
    """Packages that are bundled into the page: all that is not for development alone."""
    lock = json.loads(read(os.path.join(web, "package-lock.json")))
    for place, row in sorted(lock["packages"].items()):
        if not place or row.get("dev") or row.get("optional"):
            continue
        name = place.rpartition("node_modules/")[2]
        folder = os.path.join(web, place)
        files = sorted(file for file in (os.listdir(folder) if os.path.isdir(folder) else []) if file.upper().startswith("LICENSE"))
        text = read(os.path.join(folder, files[0])) if files else ""
        yield Part(name, row["version"], "bundled into the page", f"pkg:npm/{name.replace('@', '%40')}@{row['version']}", row.get("license", "NOASSERTION"), text)


def bill(version, parts, epoch):
    """The list of parts, as SPDX 2.3 in JSON."""
    rows, relations = [], [{"spdxElementId": "SPDXRef-DOCUMENT", "relationshipType": "DESCRIBES", "relatedSpdxElement": "SPDXRef-lacuna"}]
    own = Part("lacuna", version, "", f"pkg:generic/lacuna@{version}", "Apache-2.0", "")
    for part in (own, *parts):
        place = "SPDXRef-" + re.sub(r"[^A-Za-z0-9.]+", "-", part.name).strip("-")
        row = {"SPDXID": place, "name": part.name, "versionInfo": part.version, "downloadLocation": "NOASSERTION", "filesAnalyzed": False,
               "licenseConcluded": "NOASSERTION", "licenseDeclared": part.license, "copyrightText": "NOASSERTION"}
        if part.kind:
            row["comment"] = part.kind
        if part.purl:
            row["externalRefs"] = [{"referenceCategory": "PACKAGE-MANAGER", "referenceType": "purl", "referenceLocator": part.purl}]
        rows.append(row)
        if part is not own:
            relation = "STATIC_LINK" if "static" in part.kind else "CONTAINS"
            relations.append({"spdxElementId": "SPDXRef-lacuna", "relationshipType": relation, "relatedSpdxElement": place})
    digest = hashlib.sha256(json.dumps(rows, sort_keys=True).encode()).hexdigest()[:32]
    document = {"spdxVersion": "SPDX-2.3", "dataLicense": "CC0-1.0", "SPDXID": "SPDXRef-DOCUMENT", "name": f"lacuna-{version}",
                "documentNamespace": f"urn:lacuna:sbom:{version}:{digest}",
                "creationInfo": {"created": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(epoch)), "creators": [f"Tool: lacuna-{version}"]},
                "packages": rows, "relationships": relations}
    return json.dumps(document, indent=1, sort_keys=True) + "\n"


def licenses(parts):
    """The texts of all parts' licenses, one after the other."""
    out = ["Lacuna contains the software below. The text of each license follows its name.\n"]
    for part in parts:
        head = f"{part.name} {part.version} ({part.kind})"
        out.append(f"{head}\n{'=' * len(head)}\n\n{part.text.strip() or 'No text was found where this was built.'}\n")
    return "\n".join(out)
