"""The work at hosts that promotions share: one poll for each repository, commit statuses, pull requests of others.

poll         the regular look at the open pull requests of a repository
others       the commit statuses of pull requests that kardinal has not opened
touched, included   which environments a change reaches, by their directories and those they include
statuses     the commit statuses of one pull request
memory       statuses and texts that were written lately
"""
