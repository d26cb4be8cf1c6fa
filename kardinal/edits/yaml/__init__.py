"""Paths into YAML and JSON documents, and changes of single values that keep comments and layout.

    file = DocumentFile.parse(content)
    file.edited([Update(path=parse_path("spec.containers[name=app].image"), value="app:1.2.3")])
document_path   `spec.containers[name=app].image` as a value
document_walk   the node at a path
document_text   a file with some values replaced
yaml_text       the splices of a text that replace values or add keys
yaml_scalar     the notation of a value
"""
