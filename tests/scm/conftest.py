"""The repositories of the Git room: pull requests live in them."""

from tests.git.conftest import bare, repositories, repository, runner

__all__ = ["bare", "repositories", "repository", "runner"]
