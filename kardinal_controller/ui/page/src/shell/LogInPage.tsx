import "../styles/shell.css";

import { useMutation, useQueryClient } from "@tanstack/react-query";
import { useState, type FormEvent } from "react";

import { logIn, type RequestError } from "../api/session";
import type { Viewer } from "../api/types";
import { Command } from "../parts/Command";
import { Failure } from "../parts/Says";

/** The page that asks who looks: a token is pasted once; a link of `kardinal ui` is opened again. */
export function LogInPage({ refusal }: { refusal: RequestError }) {
  return (
    <main className="login panel">
      <div className="mark">
        <svg viewBox="0 0 20 20" aria-hidden>
          <rect x="3.5" y="3.5" width="13" height="13" rx="2.5" transform="rotate(45 10 10)" />
        </svg>
        <h1>kardinal</h1>
      </div>
      {refusal.auth === "kubeconfig" && (
        <>
          <p>Each link to this page works once. Print a new one where the page was started, or start it again:</p>
          <Command text="kardinal ui" />
        </>
      )}
      {refusal.auth === "proxy" && <p>The proxy in front of this page has not said who you are.</p>}
      {(refusal.auth === "token" || !refusal.auth) && <TokenForm />}
      {refusal.auth !== "token" && <Failure error={refusal} />}
    </main>
  );
}

function TokenForm() {
  const [token, setToken] = useState("");
  const queries = useQueryClient();
  const entering = useMutation<Viewer, RequestError>({
    mutationFn: () => logIn({ token: token.trim() }),
    onSuccess: (viewer) => queries.setQueryData(["viewer"], viewer),
  });
  const submit = (event: FormEvent) => {
    event.preventDefault();
    if (token.trim()) entering.mutate();
  };
  return (
    <form className="stack" onSubmit={submit}>
      <label htmlFor="token">Paste a token of the cluster. You see what it may list; the page changes nothing.</label>
      <textarea
        id="token"
        value={token}
        onChange={(event) => setToken(event.target.value)}
        autoComplete="off"
        spellCheck={false}
      />
      <div className="row">
        <button type="submit" className="button first" disabled={entering.isPending || !token.trim()}>
          Log in
        </button>
      </div>
      {entering.error && <Failure error={entering.error} />}
      <p className="small muted">A token for an hour</p>
      <Command text="kubectl create token NAME --namespace NAMESPACE" />
    </form>
  );
}
