import { Tooltip } from "radix-ui";

import { useTimeWords } from "../api/use";
import { absolute, clock, exactly, roughly } from "../words/time";

/** How long ago a time was; the absolute time is in its title. For places with many times, such as a list. */
export function Age({ at }: { at: string | undefined }) {
  const moment = at ? Date.parse(at) : NaN;
  const words = useTimeWords((now) => (Number.isNaN(moment) ? "" : roughly(now - moment)));
  if (!words) return null;
  return (
    <time dateTime={at} title={absolute(moment)}>
      {words}
    </time>
  );
}

/** How long ago a time was, with the absolute time on hover and focus. */
export function Ago({ at }: { at: string | undefined }) {
  const moment = at ? Date.parse(at) : NaN;
  const words = useTimeWords((now) => (Number.isNaN(moment) ? "" : `${roughly(now - moment)} ago`));
  return words ? <Absolute at={moment} words={words} /> : null;
}

/** The clock time since which something is so: `14:05`. */
export function Since({ at }: { at: string }) {
  const moment = Date.parse(at);
  const words = useTimeWords((now) => clock(moment, now));
  return <Absolute at={moment} words={words} />;
}

/** A time ahead: `Mon 09:00 CET, in 2 d 13 h`; what is due is awaited "any moment". */
export function Countdown({ until, onlyRest = false }: { until: string; onlyRest?: boolean }) {
  const moment = Date.parse(until);
  const words = useTimeWords((now) => {
    if (moment <= now) return "any moment";
    const rest = `in ${exactly(moment - now)}`;
    return onlyRest ? rest : `${clock(moment, now)}, ${rest}`;
  });
  return <Absolute at={moment} words={words} />;
}

function Absolute({ at, words }: { at: number; words: string }) {
  return (
    <Tooltip.Root>
      <Tooltip.Trigger asChild>
        {/* eslint-disable-next-line jsx-a11y/no-noninteractive-tabindex -- the absolute time is shown on focus, too */}
        <time dateTime={new Date(at).toISOString()} tabIndex={0}>
          {words}
        </time>
      </Tooltip.Trigger>
      <Tooltip.Portal>
        <Tooltip.Content className="tip" sideOffset={4}>
          {absolute(at)}
        </Tooltip.Content>
      </Tooltip.Portal>
    </Tooltip.Root>
  );
}

/** The length of a part of the work: from a time to a later one, or to now. */
export function Lasted({ from, to }: { from: string | undefined; to: string | undefined }) {
  const words = useTimeWords((now) => (from ? exactly((to ? Date.parse(to) : now) - Date.parse(from)) : ""));
  return <>{words}</>;
}
