"""All of kardinal on one machine without a cluster: `kardinal local`, `kardinal demo` and `kardinal sample`.

    async with run_stack(directory, options=PlaneOptions(), simulate=True) as stack:
        server = stack.endpoints.server

plane         the API server
simulator     a simulated GitOps tool and kubelet
serving       run the plane on a directory, with the port that it had before
stack         run the plane with controller, agent and simulator in one process
rights        the RBAC rules of these programs
signals       stop by SIGINT and SIGTERM
export        print the objects of a plane for `kubectl apply`; `exclusions` decides which are omitted
sample        the sample repository with its Pipeline and gates
walkthrough   `kardinal demo`; `timeline` computes the lines that it prints
commands      the click commands
"""
