import { useQuery } from "@tanstack/react-query";

import { requestText, type RequestError } from "../api/session";
import { useViewer } from "../api/viewer";
import { Yaml } from "../parts/Code";
import { Command, CopyButton } from "../parts/Command";
import { Failure } from "../parts/Says";
import { endpoint, yamlPath } from "../words/routes";

/** The YAML of an object, read with the identity of the viewer. */
export default function YamlPage({ kind, namespace, name }: { kind: string; namespace: string; name: string }) {
  const viewer = useViewer();
  const path = endpoint(yamlPath(kind, namespace, name));
  const yaml = useQuery<string, RequestError>({
    queryKey: ["yaml", path],
    queryFn: ({ signal }) => requestText(path, { signal }),
    enabled: viewer.readsAsViewer,
  });
  return (
    <main className="main">
      <div className="heading">
        <h1 className="break">{name}</h1>
        <span className="muted">
          {kind} · {namespace}
        </span>
        <span className="space" />
        {yaml.data && <CopyButton text={yaml.data} label="Copy the YAML" />}
      </div>
      <Command text={`kubectl get ${kind} ${name} --namespace ${namespace} --output yaml`} />
      {yaml.error && <Failure error={yaml.error} />}
      {yaml.data && <Yaml text={yaml.data} />}
    </main>
  );
}
