import "../styles/shell.css";

import { useQueryClient } from "@tanstack/react-query";
import { ChevronDown, Moon, Sun, SunMoon } from "lucide-react";
import { DropdownMenu } from "radix-ui";
import { useState } from "react";
import { Link, useLocation } from "wouter";

import { useConnection } from "../api/connection";
import { logOut } from "../api/session";
import { useTimeWords } from "../api/use";
import { useViewer } from "../api/viewer";
import { absolute, clock, roughly } from "../words/time";
import { SearchField, useFilters } from "./search";
import { chosenTheme, nextTheme } from "./theme";

const TABS: readonly [string, string, RegExp][] = [
  ["Pipelines", "/", /^\/$|^\/pipelines/],
  ["Bundles", "/bundles", /^\/bundles/],
  ["Graphs", "/graphs", /^\/graphs/],
];

/** The bar at the top of every page. */
export function TopBar() {
  const [path] = useLocation();
  return (
    <header className="bar">
      <Link to="/" className="mark" aria-label="kardinal, all Pipelines">
        <svg viewBox="0 0 20 20" aria-hidden>
          <rect x="3.5" y="3.5" width="13" height="13" rx="2.5" transform="rotate(45 10 10)" />
        </svg>
        <span>kardinal</span>
      </Link>
      <nav aria-label="Pages">
        {TABS.map(([name, to, active]) => (
          <Link key={to} to={to} className="tab" aria-current={active.test(path) ? "page" : undefined}>
            {name}
          </Link>
        ))}
      </nav>
      <SearchField />
      <div className="bar-end">
        <ConnectionDot />
        <NamespaceMenu />
        <ThemeButton />
        <ViewerMenu />
      </div>
    </header>
  );
}

function ConnectionDot() {
  const connection = useConnection();
  const lost = connection?.lostSince;
  const words = useTimeWords((now) => {
    if (!connection) return "";
    if (connection.live) return "live";
    return lost === undefined ? "connecting" : `lost since ${clock(lost, now)}, ${roughly(now - lost)}`;
  });
  if (!words) return null;
  const tone = connection?.live ? "ok" : lost === undefined ? "rest" : "bad";
  return (
    <span className={`dot tone-${tone}`} role="status" title={lost === undefined ? undefined : absolute(lost)}>
      {words}
    </span>
  );
}

function NamespaceMenu() {
  const { namespaces } = useViewer();
  const [filters, setFilter] = useFilters();
  const [path] = useLocation();
  if (namespaces.length < 2 || !["/", "/bundles", "/graphs"].includes(path)) return null;
  return (
    <DropdownMenu.Root modal={false}>
      <DropdownMenu.Trigger className="button plain">
        <span className="ellipsis">{filters.namespace || "all namespaces"}</span>
        <ChevronDown aria-hidden />
      </DropdownMenu.Trigger>
      <DropdownMenu.Content className="menu panel" align="end" sideOffset={6}>
        <DropdownMenu.RadioGroup value={filters.namespace} onValueChange={(value) => setFilter("namespace", value)}>
          <DropdownMenu.RadioItem value="">all namespaces</DropdownMenu.RadioItem>
          {namespaces.map((name) => (
            <DropdownMenu.RadioItem key={name} value={name}>
              {name}
            </DropdownMenu.RadioItem>
          ))}
        </DropdownMenu.RadioGroup>
      </DropdownMenu.Content>
    </DropdownMenu.Root>
  );
}

function ThemeButton() {
  const [theme, setTheme] = useState(chosenTheme);
  const Icon = theme === "system" ? SunMoon : theme === "light" ? Sun : Moon;
  const label = `Colours: ${theme === "system" ? "as the system" : theme}`;
  return (
    <button
      type="button"
      className="button plain"
      aria-label={label}
      title={label}
      onClick={() => setTheme(nextTheme())}
    >
      <Icon aria-hidden />
    </button>
  );
}

function ViewerMenu() {
  const viewer = useViewer();
  const queries = useQueryClient();
  const leave = () => void logOut().finally(() => queries.resetQueries());
  return (
    <DropdownMenu.Root modal={false}>
      <DropdownMenu.Trigger className="button plain">
        <span className="ellipsis viewer">{viewer.user}</span>
        <ChevronDown aria-hidden />
      </DropdownMenu.Trigger>
      <DropdownMenu.Content className="menu panel" align="end" sideOffset={6}>
        <div className="note">
          <div className="strong">{viewer.user}</div>
          {viewer.groups.length > 0 && <div>{viewer.groups.join(", ")}</div>}
          <div>{viewer.mayAct ? "Actions run as you." : "This page changes nothing; it shows the commands."}</div>
          <div>kardinal {viewer.version}</div>
        </div>
        {viewer.auth !== "proxy" && <DropdownMenu.Item onSelect={leave}>Log out</DropdownMenu.Item>}
      </DropdownMenu.Content>
    </DropdownMenu.Root>
  );
}
