"""The domain of promotion: its resources, gates, steps, translation to Graphs, and read models.

    from kardinal.promotion.api import Bundle, Pipeline
    from kardinal.promotion.translation import translate

kinds         the custom resources as `ResourceType`: group, version, kind and plural
api           the pydantic models of the custom resources, the names that are generated, the schemas in `crds/`
policy        gates: which of them bind an environment, the variables and the answer of an expression, its next turn
steps         the declaration of steps, the sequence of a promotion, the built-in steps, the text of a pull request
translation   `translate`: a Pipeline, a Bundle and gate templates become a Graph
sources       the commits that edits read besides the environment's own files, such as inputs and configurations
views         read models: dataclasses computed from observed objects, which commands and web pages display
"""
