import { useState, type KeyboardEvent } from "react";
import { useLocation, useSearchParams } from "wouter";

/** What is shown of the overview; all of it stands in the address, so that a link shows the same. */
export interface Filters {
  readonly q: string;
  readonly need: string;
  readonly namespace: string;
  readonly view: string;
}

/** Return the filters of the address, and a function that changes one of them. */
export function useFilters(): [Filters, (key: keyof Filters, value: string) => void] {
  const [parameters, setParameters] = useSearchParams();
  const of = (key: string) => parameters.get(key) ?? "";
  const change = (key: keyof Filters, value: string) => {
    setParameters(
      (before) => {
        const after = new URLSearchParams(before);
        if (value) after.set(key, value);
        else after.delete(key);
        return after;
      },
      { replace: key === "q" },
    );
  };
  return [{ q: of("q"), need: of("need"), namespace: of("namespace"), view: of("view") }, change];
}

/** The search in the bar. On the overview it filters while one types; elsewhere Enter searches. */
export function SearchField() {
  const [filters, setFilter] = useFilters();
  const [path, go] = useLocation();
  const here = path === "/";
  const [typed, type] = useState("");
  const text = here ? filters.q : typed;
  const onChange = (value: string) => (here ? setFilter("q", value) : type(value));
  const onKeyDown = (event: KeyboardEvent<HTMLInputElement>) => {
    if (event.key === "Enter" && !here && text) {
      go(`/?q=${encodeURIComponent(text)}`);
      type("");
    }
    if (event.key === "Escape") {
      if (text) onChange("");
      else event.currentTarget.blur();
      event.preventDefault();
    }
    if (event.key === "Enter" && here) document.querySelector<HTMLElement>("[data-stop]")?.focus();
  };
  return (
    <div className="search" role="search">
      <label className="unseen" htmlFor="search">
        Find a Pipeline, version, commit or person
      </label>
      <input
        id="search"
        type="search"
        autoComplete="off"
        spellCheck={false}
        placeholder="Find a pipeline, version, commit, person …"
        value={text}
        onChange={(event) => onChange(event.target.value)}
        onKeyDown={onKeyDown}
      />
      <kbd aria-hidden>/</kbd>
    </div>
  );
}
