"""Checks values against the JSON Schemas that Lacuna publishes: the part of 2020-12 that they use, and an error on any other word."""
import math
import re

TYPES = {
    "object": lambda v: isinstance(v, dict),
    "array": lambda v: isinstance(v, list),
    "string": lambda v: isinstance(v, str),
    "boolean": lambda v: isinstance(v, bool),
    "null": lambda v: v is None,
    "integer": lambda v: isinstance(v, int) and not isinstance(v, bool),
    "number": lambda v: isinstance(v, (int, float)) and not isinstance(v, bool) and math.isfinite(v),
}
NOTES = {"description", "title", "default", "examples", "$schema", "$defs", "example"}
CHECKED = {"$ref", "type", "enum", "const", "properties", "required", "additionalProperties", "items", "prefixItems", "anyOf", "oneOf", "allOf", "pattern",
           "minimum", "maximum", "minItems", "maxItems", "minLength", "maxLength", "format"}


def target_of(reference, root):
    target = root
    for part in reference.removeprefix("#/").split("/"):
        target = target[part]
    return target


def named_by(schema, root):
    """The members that a schema names, with those of its parts."""
    schema = target_of(schema["$ref"], root) if "$ref" in schema else schema
    return set(schema.get("properties", {})).union(*(named_by(each, root) for each in schema.get("allOf", [])))


def problems(value, schema, root, is_strict=True, at="$"):
    """What a value breaks, a line each. Strict: a member that the schema does not name is a problem, as documentation it lacks."""
    found = []
    unknown = set(schema) - NOTES - CHECKED
    if unknown:
        found.append(f"{at}: the schema says {sorted(unknown)}, which nothing checks")
    if "$ref" in schema:
        found += problems(value, target_of(schema["$ref"], root), root, is_strict, at)
    types = schema.get("type")
    if types is not None:
        types = types if isinstance(types, list) else [types]
        if not any(TYPES[each](value) for each in types):
            return found + [f"{at}: {str(value)[:60]!r} is no {' or '.join(types)}"]
    if "const" in schema and value != schema["const"]:
        found.append(f"{at}: {value!r} is not {schema['const']!r}")
    if "enum" in schema and value not in schema["enum"]:
        found.append(f"{at}: {value!r} is none of {schema['enum']}")
    for each in schema.get("allOf", []):
        found += problems(value, each, root, False, at)
    if is_strict and "allOf" in schema and isinstance(value, dict):
        found += [f"{at}.{name} is not described" for name in sorted(set(value) - named_by(schema, root))]
    for word, holds in (("anyOf", lambda n: n >= 1), ("oneOf", lambda n: n == 1)):
        if word in schema:
            tried = [problems(value, each, root, is_strict, at) for each in schema[word]]
            if not holds(sum(not each for each in tried)):
                found.append(f"{at}: {word}: " + "; ".join(line for each in tried for line in each[:2]))
    if isinstance(value, dict):
        found += problems_of_object(value, schema, root, is_strict, at)
    elif isinstance(value, list):
        found += problems_of_list(value, schema, root, is_strict, at)
    elif isinstance(value, str):
        if "pattern" in schema and not re.search(schema["pattern"], value):
            found.append(f"{at}: {value[:60]!r} does not match {schema['pattern']}")
        if not schema.get("minLength", 0) <= len(value) <= schema.get("maxLength", 1 << 40):
            found.append(f"{at}: a text of {len(value)} characters")
    elif isinstance(value, (int, float)) and not isinstance(value, bool):
        if not schema.get("minimum", -math.inf) <= value <= schema.get("maximum", math.inf):
            found.append(f"{at}: {value} is out of bounds")
    return found


def problems_of_object(value, schema, root, is_strict, at):
    found = [f"{at}: {name} is missing" for name in schema.get("required", []) if name not in value]
    named = schema.get("properties", {})
    other = schema.get("additionalProperties", True)
    for name, member in value.items():
        if name in named:
            found += problems(member, named[name], root, is_strict, f"{at}.{name}")
        elif isinstance(other, dict):
            found += problems(member, other, root, is_strict, f"{at}.{name}")
        elif not other or (is_strict and named and "additionalProperties" not in schema):
            found.append(f"{at}.{name} is not described")
    if is_strict and value and not named and "additionalProperties" not in schema and not {"$ref", "anyOf", "oneOf", "allOf"} & set(schema):
        found.append(f"{at}: no member of it is described")
    return found


def problems_of_list(value, schema, root, is_strict, at):
    found = []
    if not schema.get("minItems", 0) <= len(value) <= schema.get("maxItems", 1 << 40):
        found.append(f"{at}: {len(value)} elements")
    first = schema.get("prefixItems", [])
    for i, element in enumerate(value):
        described = first[i] if i < len(first) else schema.get("items")
        if isinstance(described, dict):
            found += problems(element, described, root, is_strict, f"{at}[{i}]")
        elif is_strict and described is None:
            found.append(f"{at}[{i}] is not described")
    return found
