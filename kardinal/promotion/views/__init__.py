"""Read models of promotions: dataclasses computed from observed objects, which commands and web pages display.

    objects = await read_objects(reader, "team-a", "my-app")
    view = status_view(objects, now=now)

The values hold no tables, colours or widths: the caller does the layout.

reader            `Reader`, the protocol by which views read objects
api_reader        the `Reader` that sends requests to an API server; `kardinal_controller/reader.py` reads informers
reading           `read_objects`: the objects of one Pipeline, and the choice of the Bundle that is shown
states            every state with the sentence that explains it and the next command
environments      the state of each environment for one Bundle
gates             the gates of a Bundle with their answers
status            `status_view`: a Pipeline with the Bundle that is shown, as in `kardinal status`
advice            the next commands for a person
explanation       the reason why an environment has not been promoted to, as in `kardinal explain`
steps             rows of the gates and steps of one Bundle
bundles           rows of Bundles, and the order in which Bundles are listed
pipelines         rows of Pipelines
promotions        past promotions: which version was in which environment, when, and who approved it
differences       the artifacts, provenance and commits in which two Bundles differ
coverage          the gates that bind each path
render_failures   the errors of the simulator about environments that it cannot render
missing           the error about a Pipeline, Bundle or environment that does not exist
"""
