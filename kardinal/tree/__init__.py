"""Values of Git content, without Git: files, edits, commit messages, the URL of a repository.

    def set_version(tree: Tree) -> Changes:
        return {"VERSION": b"1.2.0\n"}
edit             the contract of an edit: a function from a tree to the changed files

overlay          trees over other trees: with changes on top, or with another tree below a name of the root

differences      two revisions, and a file that differs between them
file_patterns    the files that match a pattern such as `apps/**/values.yaml`
commit_message   subject, body and trailers
git_names        the trailers, labels and the branch prefix that kardinal uses
repository_url   validation and comparison of `https://`, `ssh://` and local URLs
"""
